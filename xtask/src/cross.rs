//! Tests on other machines: a browser's, a 64-bit ARM and a big-endian one.
//!
//! A rustup toolchain that builds for this machine alone has no libraries for them. Debian's `rustc-web` comes with
//! their sources, so that the unstable `-Z build-std` builds them; `RUSTC_BOOTSTRAP` makes that compiler take the
//! unstable option. Everything goes to a target directory of its own, since the compiler is another one.

use crate::repo::{command, target, works};
use crate::summary::Summary;
use std::path::Path;
use std::process::Command;

/// A machine, and what building for it takes.
struct Machine {
    target: &'static str,
    c_compiler: &'static str,
    archiver: &'static str,
    linker: &'static str,
    std_parts: &'static str,
    /// The emulator that runs the tests, with the option that names the machine's C library.
    emulator: Option<&'static str>,
    /// A file that only the machine's C library has.
    library: Option<&'static str>,
    /// Debian's packages, beside the compiler.
    packages: &'static str,
}

const COMPILER_PACKAGES: &str = "rustc-web cargo-web rust-web-src";
const CARGO: &str = "/usr/bin/cargo";
const LIBRARY_SOURCES: &str = "/usr/lib/rustlib/src/rust/library/std";

const MACHINES: [Machine; 3] = [
    Machine {
        target: "wasm32-unknown-unknown",
        c_compiler: "clang",
        archiver: "llvm-ar",
        linker: "wasm-ld",
        std_parts: "std,panic_abort",
        emulator: None,
        library: None,
        packages: "clang lld llvm",
    },
    Machine {
        target: "aarch64-unknown-linux-gnu",
        c_compiler: "aarch64-linux-gnu-gcc",
        archiver: "aarch64-linux-gnu-ar",
        linker: "aarch64-linux-gnu-gcc",
        std_parts: "std,panic_unwind",
        emulator: Some("qemu-aarch64 -L /usr/aarch64-linux-gnu"),
        library: Some("/usr/aarch64-linux-gnu/lib/libc.so.6"),
        packages: "gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user",
    },
    Machine {
        target: "s390x-unknown-linux-gnu",
        c_compiler: "s390x-linux-gnu-gcc",
        archiver: "s390x-linux-gnu-ar",
        linker: "s390x-linux-gnu-gcc",
        std_parts: "std,panic_unwind",
        emulator: Some("qemu-s390x -L /usr/s390x-linux-gnu"),
        library: Some("/usr/s390x-linux-gnu/lib/libc.so.6"),
        packages: "gcc-s390x-linux-gnu libc6-dev-s390x-cross qemu-user",
    },
];

/// Builds the library for each machine; where there is an emulator, runs its tests there.
pub(crate) fn run(summary: &mut Summary) {
    for machine in &MACHINES {
        let missing = machine.missing();
        if missing.is_empty() {
            match machine.emulator {
                Some(_) => summary.tests(machine.target, machine.command()),
                None => summary.check(machine.target, machine.command()),
            }
        } else {
            summary.skip(machine.target, &format!("without {}; {}", missing.join(", "), machine.advice()));
        }
    }
}

impl Machine {
    /// What building for the machine takes and is not there.
    fn missing(&self) -> Vec<&str> {
        let mut files = vec![CARGO, LIBRARY_SOURCES];
        files.extend(self.library);
        let mut missing: Vec<&str> = files.into_iter().filter(|file| !Path::new(file).exists()).collect();
        let emulator = self.emulator.and_then(|emulator| emulator.split(' ').next());
        let mut programs = vec![self.c_compiler, self.archiver, self.linker];
        programs.extend(emulator);
        programs.dedup();
        missing.extend(programs.into_iter().filter(|program| {
            let mut probe = command(program);
            probe.arg("--version");
            !works(probe)
        }));
        missing
    }

    fn advice(&self) -> String {
        format!("on Debian: apt-get install {COMPILER_PACKAGES} {}", self.packages)
    }

    fn command(&self) -> Command {
        let mut cargo = command(CARGO);
        match self.emulator {
            Some(_) => cargo.args(["test", "--lib", "--tests", "--no-fail-fast"]),
            // Nothing but reading, from memory: there are no files and no threads.
            None => cargo.args(["build", "--no-default-features"]),
        };
        cargo.args(["-p", "brickmap", "--target", self.target]);
        cargo.arg("-Z").arg(format!("build-std={}", self.std_parts));
        let lower = self.target.replace('-', "_");
        let upper = lower.to_uppercase();
        cargo
            .env("PATH", "/usr/bin:/bin")
            .env("RUSTC_BOOTSTRAP", "1")
            .env("CARGO_TARGET_DIR", target().join("cross"));
        cargo.env(format!("CC_{lower}"), self.c_compiler).env(format!("AR_{lower}"), self.archiver);
        cargo.env(format!("CARGO_TARGET_{upper}_LINKER"), self.linker);
        if let Some(emulator) = self.emulator {
            cargo.env(format!("CARGO_TARGET_{upper}_RUNNER"), emulator);
        }
        // Set by the cargo that runs this program: they would name its own toolchain.
        for variable in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
            cargo.env_remove(variable);
        }
        cargo
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_names_the_machine_and_its_tools() {
        for machine in &MACHINES {
            let command = machine.command();
            assert!(command.get_args().any(|argument| argument == machine.target));
            let compiler = format!("CC_{}", machine.target.replace('-', "_"));
            assert!(command.get_envs().any(|(name, value)| *name == *compiler && value.is_some()));
            assert!(machine.advice().contains(COMPILER_PACKAGES));
        }
    }
}
