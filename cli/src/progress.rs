//! Progress bars on standard error.

use brickmap::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Work that is done sooner draws no bar.
const DELAY: Duration = Duration::from_millis(400);

/// A bar for work that is counted in bytes. It appears only if the work takes a while and standard error is a terminal,
/// and is gone when it is dropped.
pub(crate) struct Bar {
    bar: ProgressBar,
    wanted: bool,
    shown: AtomicBool,
    start: Instant,
}

impl Bar {
    pub(crate) fn new(what: &'static str, quiet: bool) -> Bar {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden()).with_message(what);
        let template =
            "{msg} [{bar:30}] {decimal_bytes} of {decimal_total_bytes}, {decimal_bytes_per_sec}, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        Bar { bar, wanted: !quiet, shown: AtomicBool::new(false), start: Instant::now() }
    }

    /// Says how far the work has come. Never cancels it.
    pub(crate) fn tell(&self, progress: Progress) -> ControlFlow<()> {
        self.bar.set_length(progress.total);
        self.bar.set_position(progress.done);
        if self.wanted && self.start.elapsed() > DELAY && !self.shown.swap(true, Ordering::Relaxed) {
            // Draws nothing if standard error is not a terminal.
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        ControlFlow::Continue(())
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
