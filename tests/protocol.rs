//! The protocol of commits, pins and space reuse as a model, searched through every order in which its steps can happen.
//!
//! SPEC.md states the rules: §5 which root page a commit writes, which root is taken and which generations it lists as
//! alive; §13 when space may be used again and what readers and writers tell each other by locks. Tests of the code
//! meet a few orders of events; this one meets all of them, in a small world:
//!
//! * a **file** of three root pages and a few cells. One cell stands for everything that a generation reaches. What
//!   processes see and what the disk holds are kept apart: the disk may hold any write since the last sync, or half of
//!   one, in every combination;
//! * one **writer** at a time. It opens, and makes durable what another one deferred. It asks for the pins of one
//!   generation after the other, takes a free cell or a fresh one (or changes nothing), and commits, either synced or
//!   deferred; or it syncs what was deferred. It can be killed between any two steps, and a sync can fail, which ends it;
//! * **readers** that read a root, pin it, look again, and accept it, fall back to the newest synced one, or give up. One
//!   that has accepted can hand its root to another, which takes it up at any later time;
//! * **power losses**. Whatever may be left is judged in every state. After the first loss of a history the search goes
//!   on with it: there are no processes, what the disk holds is what the next ones see, and roots that were deferred
//!   before count only if they are whole. A root that was handed over can still be taken up.
//!
//! The [promises](Promise): an accepted snapshot sees its data until it is let go; power loss takes back no synced commit
//! that was acknowledged; the root that is taken is whole; it is the last one that was published.
//!
//! The first test holds the protocol to them. The second leaves out one [`Rule`] at a time and wants the promise broken
//! that the rule is there for: no rule is idle, and the model sees what it is meant to see.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;

/// The last generation that is committed before the power is lost; the first is 1.
const GENERATIONS: u8 = 3;
/// How many are committed after that. Data of one more is written.
const LATE_GENERATIONS: u8 = 1;
const CELLS: usize = 4;
const READERS: usize = 2;
/// How many of them there are after the power was lost.
const LATE_READERS: usize = 1;
/// How many writers end early: are killed, or have a sync that fails.
const ENDS: u8 = 1;
/// The same for those after the power was lost.
const LATE_ENDS: u8 = 0;
const PAGES: usize = 3;

/// What the protocol demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    DataFirst,
    SyncedBeforeAcknowledged,
    WriteBack,
    WriteDataBack,
    SparePage,
    PagesNotGenerations,
    DeferredFirst,
    OthersMadeDurable,
    DoubtDeferred,
    DoubtHandedOver,
    LookAgain,
    LookAgainAtSynced,
    CompareIds,
    AboveAll,
    PinsKeep,
    SyncedRootKeeps,
    ListAfterPublishing,
    AliveKeeps,
    AliveWasKnown,
}

impl Rule {
    const ALL: [Self; 19] = [
        Self::DataFirst,
        Self::SyncedBeforeAcknowledged,
        Self::WriteBack,
        Self::WriteDataBack,
        Self::SparePage,
        Self::PagesNotGenerations,
        Self::DeferredFirst,
        Self::OthersMadeDurable,
        Self::DoubtDeferred,
        Self::DoubtHandedOver,
        Self::LookAgain,
        Self::LookAgainAtSynced,
        Self::CompareIds,
        Self::AboveAll,
        Self::PinsKeep,
        Self::SyncedRootKeeps,
        Self::ListAfterPublishing,
        Self::AliveKeeps,
        Self::AliveWasKnown,
    ];

    /// The rule in words, and the promise that rests on it.
    fn meaning(self) -> (&'static str, Promise) {
        use Promise::{Acknowledged, Published, Snapshot, Whole};
        match self {
            Self::DataFirst => {
                ("the data of a synced commit is on the disk before its root is written", Whole)
            }
            Self::SyncedBeforeAcknowledged => {
                ("a synced commit is acknowledged only when its root page is on the disk", Acknowledged)
            }
            Self::WriteBack => {
                ("whoever opens for writing writes the root pages back and syncs them", Acknowledged)
            }
            // A step ahead of the code, which only syncs: see the ignored test in src/store/power_loss.rs.
            Self::WriteDataBack => (
                "whoever makes a deferred commit of another durable writes its data back: a sync may have failed",
                Whole,
            ),
            Self::SparePage => {
                ("a commit spares the pages of the newest root and of the newest synced one", Acknowledged)
            }
            Self::PagesNotGenerations => (
                "of the two pages that have the generation of the newest synced root, the one with that root is spared",
                Acknowledged,
            ),
            Self::DeferredFirst => {
                ("what was deferred is on the disk before its root is written as a synced one", Whole)
            }
            Self::OthersMadeDurable => {
                ("a writer goes on from what another deferred only when it is on the disk", Acknowledged)
            }
            Self::DoubtDeferred => ("a deferred root is not trusted after a power loss", Whole),
            Self::DoubtHandedOver => (
                "a deferred root that was handed over across a power loss is not trusted, nor is the list of one",
                Snapshot,
            ),
            Self::LookAgain => ("a reader looks for the newest root again once it has its pin", Snapshot),
            Self::LookAgainAtSynced => {
                ("so does one that takes the newest synced root since it doubts the newest", Snapshot)
            }
            Self::CompareIds => ("roots are the same if their ids are, not only their generations", Snapshot),
            Self::AboveAll => {
                ("a commit has a generation above all in the pages, also those not taken", Published)
            }
            Self::PinsKeep => ("space that a pinned generation sees is kept", Snapshot),
            Self::SyncedRootKeeps => ("space that the newest synced root sees is kept", Whole),
            Self::ListAfterPublishing => {
                ("pins are listed once more between publishing a root and using space again", Snapshot)
            }
            Self::AliveKeeps => {
                ("what a root lists as alive is kept until the next one, pinned or not", Snapshot)
            }
            Self::AliveWasKnown => (
                "a root lists a pin as alive only if the root before is of, or lists, that generation",
                Snapshot,
            ),
        }
    }
}

/// What users rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Promise {
    /// What an accepted snapshot sees is not written over.
    Snapshot,
    /// A power loss takes back no synced commit that was acknowledged, and nothing that a writer went on from.
    Acknowledged,
    /// The root that is taken has its data, also after a power loss.
    Whole,
    /// The root that is taken is the last one that was published, synced or not, while the power is there.
    Published,
}

/// A set of generations, bit g for generation g.
type Generations = u8;

const fn only(generation: u8) -> Generations {
    1 << generation
}

/// A commit, as its generation and its id tell it from all others. The id needs to say no more than whether it came
/// after the power loss.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Commit(u8);

impl Commit {
    const PER_BOOT: u8 = 7;

    fn new(generation: u8, boot: u8) -> Self {
        Self(generation + boot * Self::PER_BOOT)
    }

    fn generation(self) -> u8 {
        self.0 % Self::PER_BOOT
    }

    fn boot(self) -> u8 {
        self.0 / Self::PER_BOOT
    }
}

const _: () = assert!(GENERATIONS + LATE_GENERATIONS + 1 < Commit::PER_BOOT);

impl fmt::Display for Commit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.generation(), if self.boot() > 0 { "'" } else { "" })
    }
}

/// A set of commits.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
struct Commits(u16);

impl Commits {
    fn with(self, commit: Commit) -> Self {
        Self(self.0 | 1 << commit.0)
    }

    fn has(self, commit: Commit) -> bool {
        self.0 & 1 << commit.0 != 0
    }

    fn generations(self) -> Generations {
        (self.0 | self.0 >> Commit::PER_BOOT) as u8 & (only(Commit::PER_BOOT) - 1)
    }

    fn of_generation(self, generation: u8) -> Self {
        Self(self.0 & (1 << generation | 1 << (generation + Commit::PER_BOOT)))
    }
}

/// What a cell holds: the commit that wrote it, or one of these.
const BLANK: Commit = Commit(14);
const TORN: Commit = Commit(15);

/// A root record.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Root {
    commit: Commit,
    /// Where its data is, and the commit that wrote it.
    cell: u8,
    birth: Commit,
    /// For each cell the generations that can still see it although it is free; none for one that is not in the list.
    freed: [Generations; CELLS],
    alive: Commits,
    synced: bool,
}

impl Root {
    fn generation(&self) -> u8 {
        self.commit.generation()
    }

    /// A commit with the same data, before it is known what is alive.
    fn successor(self, commit: Commit, synced: bool) -> Self {
        Self { commit, alive: Commits::default(), synced, ..self }
    }

    /// A commit with data in another cell; the cell of this one becomes free.
    fn moved_to(self, cell: usize, commit: Commit, synced: bool) -> Self {
        let mut next = self.successor(commit, synced);
        next.freed[cell] = 0;
        next.freed[usize::from(self.cell)] = only(commit.generation()) - only(self.birth.generation());
        Self { cell: cell as u8, birth: commit, ..next }
    }

    /// The newest counts; of equals a synced one.
    fn rank(&self) -> (u8, bool) {
        (self.generation(), self.synced)
    }
}

/// Stands for a [`Root`], to keep states small.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct RootId(u16);

/// The roots of which the disk may hold any in one page. If it is more than one, the page may also be torn.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Remains {
    roots: [RootId; 4],
    count: u8,
}

impl Remains {
    fn certain(root: RootId) -> Self {
        let mut remains = Self { roots: Default::default(), count: 0 };
        remains.add(root);
        remains
    }

    fn add(&mut self, root: RootId) {
        self.roots[usize::from(self.count)] = root;
        self.count += 1;
    }

    fn roots(&self) -> &[RootId] {
        &self.roots[..self.count.into()]
    }

    /// What a power loss may leave; `None` is a torn page.
    fn outcomes(&self) -> impl Iterator<Item = Option<RootId>> {
        self.roots().iter().copied().map(Some).chain((self.count > 1).then_some(None))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Phase {
    /// Has found a root that another one deferred.
    Adopting,
    /// Lists pins, then takes space and writes data. `root` is the newest one.
    Listing,
    /// Has written its data, and will sync it. From here on `root` is the one to be published.
    Written,
    /// Lists pins for the new root.
    ListingAlive,
    /// Has written the root.
    Published,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Writer {
    phase: Phase,
    root: RootId,
    /// What the listing under way has found, and the generation that it asks for next.
    found: Generations,
    next: u8,
}

impl Writer {
    fn new(phase: Phase, root: RootId) -> Self {
        Self { phase, root, found: 0, next: 1 }
    }

    fn found(self, yes: bool) -> Self {
        let found = if yes { self.found | only(self.next) } else { self.found };
        Self { found, next: self.next + 1, ..self }
    }
}

/// How a reader came to its root.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Source {
    Newest,
    /// It doubts the newest root, so this is the newest synced one.
    Synced,
    HandedOver,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Reader {
    Idle,
    Read(RootId, Source),
    Pinned(RootId, Source),
    Accepted(RootId),
}

/// A state of everything.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct World {
    /// What processes see.
    pages: [RootId; PAGES],
    cells: [Commit; CELLS],
    /// What the disk may hold.
    page_remains: [Remains; PAGES],
    cell_remains: [Commits; CELLS],
    /// Pages and cells whose sync failed, one bit each: syncing again does nothing for them unless they are written again.
    stuck_pages: u8,
    stuck_cells: u8,
    writer: Option<Writer>,
    /// Sorted, since it does not matter which reader is which.
    readers: [Reader; READERS],
    /// A root that an accepted snapshot has handed over, until it is taken up.
    parcel: Option<RootId>,
    /// How many writers can still end early.
    ends: u8,
    /// The newest synced generation that a caller was told of.
    acknowledged: u8,
    /// The root that was written last, or the one that was left to be taken after the power loss.
    published: RootId,
    /// How often the power was lost.
    boot: u8,
    /// The last generation that is committed.
    last: u8,
}

impl World {
    fn is_stuck_page(&self, page: usize) -> bool {
        self.stuck_pages & 1 << page != 0
    }

    fn is_stuck_cell(&self, cell: usize) -> bool {
        self.stuck_cells & 1 << cell != 0
    }

    fn synced(mut self) -> Self {
        for cell in 0..CELLS {
            if !self.is_stuck_cell(cell) {
                self.cell_remains[cell] = Commits::default().with(self.cells[cell]);
            }
        }
        for page in 0..PAGES {
            if !self.is_stuck_page(page) {
                self.page_remains[page] = Remains::certain(self.pages[page]);
            }
        }
        self
    }

    /// A sync that failed: what it had to do will not be done by the next one either, and the writer ends.
    fn failed(mut self) -> Self {
        for cell in 0..CELLS {
            self.stuck_cells |= u8::from(self.cell_remains[cell].0.count_ones() > 1) << cell;
        }
        for page in 0..PAGES {
            self.stuck_pages |= u8::from(self.page_remains[page].count > 1) << page;
        }
        Self { writer: None, ends: self.ends - 1, ..self }
    }

    fn with_writer(self, writer: Writer) -> Self {
        Self { writer: Some(writer), ..self }
    }

    fn with_data(mut self, cell: usize, commit: Commit) -> Self {
        self.cells[cell] = commit;
        self.cell_remains[cell] = self.cell_remains[cell].with(commit).with(TORN);
        self.stuck_cells &= !(1 << cell);
        self
    }

    fn with_root(mut self, page: usize, root: RootId) -> Self {
        self.pages[page] = root;
        self.page_remains[page].add(root);
        self.stuck_pages &= !(1 << page);
        self.published = root;
        self
    }

    fn with_reader(mut self, which: usize, reader: Reader) -> Self {
        self.readers[which] = reader;
        self.readers.sort_unstable();
        self
    }
}

/// A step, as the trace tells it.
#[derive(Clone, Copy)]
enum Event {
    WriterOpens(Commit),
    WriterKilled,
    Asks { generation: u8, pinned: bool },
    AsksAlive { generation: u8, alive: bool },
    ChangesNothing(Commit),
    Writes { commit: Commit, cell: u8 },
    DataDone,
    Publishes { commit: Commit, page: u8, synced: bool },
    Settles { commit: Commit, page: u8 },
    Acknowledges { commit: Commit, synced: bool },
    SyncFails,
    Reads(Commit),
    TakesUp(Commit),
    Pins(Commit),
    Accepts(Commit),
    GivesUp(Commit),
    Doubts(Commit),
    LetsGo(Commit),
    HandsOver(Commit),
    PowerLoss { pages: [Commit; PAGES], cells: [Commit; CELLS] },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = |synced: bool| if synced { "synced" } else { "deferred" };
        match *self {
            Self::WriterOpens(commit) => write!(f, "writer: opens at {commit}"),
            Self::WriterKilled => write!(f, "writer: is killed"),
            Self::Asks { generation, pinned } => write!(f, "writer: is {generation} pinned? {pinned}"),
            Self::AsksAlive { generation, alive } => {
                write!(f, "writer: is {generation} to be listed as alive? {alive}")
            }
            Self::ChangesNothing(commit) => write!(f, "writer: leaves the data as it is for {commit}"),
            Self::Writes { commit, cell } => write!(f, "writer: puts the data of {commit} in cell {cell}"),
            Self::DataDone => write!(f, "writer: syncs the data"),
            Self::Publishes { commit, page, synced } => {
                write!(f, "writer: writes {} root {commit} to page {page}", kind(synced))
            }
            Self::Settles { commit, page } => {
                write!(f, "writer: syncs, and writes deferred root {commit} to page {page} as a synced one")
            }
            Self::Acknowledges { commit, synced } => {
                write!(f, "writer: acknowledges {} commit {commit}", kind(synced))
            }
            Self::SyncFails => write!(f, "writer: a sync fails, and it ends"),
            Self::Reads(commit) => write!(f, "reader: reads root {commit}"),
            Self::TakesUp(commit) => write!(f, "reader: takes up root {commit} from another"),
            Self::Pins(commit) => write!(f, "reader: pins {commit}"),
            Self::Accepts(commit) => write!(f, "reader: accepts {commit}"),
            Self::GivesUp(commit) => write!(f, "reader: gives up {commit}"),
            Self::Doubts(commit) => {
                write!(f, "reader: doubts the newest root, and reads the synced root {commit}")
            }
            Self::LetsGo(commit) => write!(f, "reader: lets go of {commit}"),
            Self::HandsOver(commit) => write!(f, "reader: hands over {commit}"),
            Self::PowerLoss { pages, cells } => write!(
                f,
                "the power is lost; the pages are of {}, the cells {}",
                pages.map(|commit| commit.to_string()).join(", "),
                cells.map(content).join(", "),
            ),
        }
    }
}

/// A promise that does not hold, and the shortest way there.
struct Broken {
    promise: Promise,
    what: String,
    trace: Vec<Event>,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?} is broken: {}", self.promise, self.what)?;
        self.trace.iter().zip(1..).try_for_each(|(event, number)| writeln!(f, "{number:4}  {event}"))
    }
}

type Steps = Vec<(Event, World)>;

/// What of a state lasts when the power is lost: what the disk may hold, what was handed over, what was acknowledged.
type Disk = ([Remains; PAGES], [Commits; CELLS], Option<RootId>, u8);

struct Model {
    left_out: Option<Rule>,
    roots: Vec<Root>,
    ids: HashMap<Root, RootId>,
    /// Of which states of the disk all that a power loss may leave was looked at.
    losses: HashSet<Disk>,
}

impl Model {
    fn new(left_out: Option<Rule>) -> Self {
        Self { left_out, roots: Vec::new(), ids: HashMap::new(), losses: HashSet::new() }
    }

    fn obeys(&self, rule: Rule) -> bool {
        self.left_out != Some(rule)
    }

    fn id(&mut self, root: Root) -> RootId {
        *self.ids.entry(root).or_insert_with(|| {
            self.roots.push(root);
            RootId(u16::try_from(self.roots.len() - 1).expect("a small world has few roots"))
        })
    }

    fn root(&self, id: RootId) -> Root {
        self.roots[usize::from(id.0)]
    }

    fn newest_page(&self, world: &World) -> usize {
        let rank = |page: &usize| self.root(world.pages[*page]).rank();
        (0..PAGES).rev().max_by_key(rank).expect("there are pages")
    }

    fn synced_page(&self, world: &World) -> Option<usize> {
        let root = |page: usize| self.root(world.pages[page]);
        (0..PAGES).rev().filter(|&page| root(page).synced).max_by_key(|&page| root(page).generation())
    }

    fn newest(&self, world: &World) -> RootId {
        world.pages[self.newest_page(world)]
    }

    fn synced(&self, world: &World) -> Option<RootId> {
        self.synced_page(world).map(|page| world.pages[page])
    }

    /// Whether a root is synced or of this boot.
    fn is_sure(&self, world: &World, root: &Root) -> bool {
        root.synced || root.commit.boot() == world.boot
    }

    /// Whether the newest root counts: what was born after the newest synced one has come to the disk, or is sure to.
    fn is_trusted(&self, world: &World, root: &Root) -> bool {
        let since = self.synced(world).map_or(0, |id| self.root(id).generation());
        self.is_sure(world, root)
            || root.birth.generation() <= since
            || world.cells[usize::from(root.cell)] == root.birth
            || !self.obeys(Rule::DoubtDeferred)
    }

    /// The root that is taken.
    fn taken(&self, world: &World) -> Option<RootId> {
        let newest = self.newest(world);
        if self.is_trusted(world, &self.root(newest)) { Some(newest) } else { self.synced(world) }
    }

    fn same(&self, a: Commit, b: Commit) -> bool {
        if self.obeys(Rule::CompareIds) { a == b } else { a.generation() == b.generation() }
    }

    /// Whether `root` is or lists a commit.
    fn is_or_lists(&self, root: &Root, commit: Commit) -> bool {
        let listed = if self.obeys(Rule::CompareIds) {
            root.alive.has(commit)
        } else {
            root.alive.generations() & only(commit.generation()) != 0
        };
        listed || self.same(root.commit, commit)
    }

    /// Whether the space of a pinned root is kept, as the pages tell it.
    fn is_kept(&self, world: &World, id: RootId, source: Source) -> bool {
        let rule = if source == Source::Synced { Rule::LookAgainAtSynced } else { Rule::LookAgain };
        if !self.obeys(rule) {
            return true;
        }
        let root = self.root(id);
        if source == Source::HandedOver && !self.is_sure(world, &root) && self.obeys(Rule::DoubtHandedOver) {
            return self.taken(world).is_some_and(|taken| self.is_or_lists(&self.root(taken), root.commit));
        }
        self.is_or_lists(&self.root(self.newest(world)), root.commit)
            || self.synced(world).is_some_and(|synced| self.same(self.root(synced).commit, root.commit))
    }

    fn is_pinned(&self, world: &World, generation: u8) -> bool {
        world.readers.iter().any(|reader| match *reader {
            Reader::Pinned(root, _) | Reader::Accepted(root) => self.root(root).generation() == generation,
            Reader::Idle | Reader::Read(..) => false,
        })
    }

    /// A new file: generation 1 in page 0, generation 0 in the others, everything synced.
    fn new_file(&mut self) -> World {
        let commit = Commit::new(0, 0);
        let alive = Commits::default();
        let zero = Root { commit, cell: 0, birth: commit, freed: [0; CELLS], alive, synced: true };
        let (zero, one) = (self.id(zero), self.id(zero.successor(Commit::new(1, 0), true)));
        let pages = [one, zero, zero];
        let mut cells = [BLANK; CELLS];
        cells[0] = commit;
        World {
            pages,
            cells,
            page_remains: pages.map(Remains::certain),
            cell_remains: cells.map(|content| Commits::default().with(content)),
            stuck_pages: 0,
            stuck_cells: 0,
            writer: None,
            readers: [Reader::Idle; READERS],
            parcel: None,
            ends: ENDS,
            acknowledged: 1,
            published: one,
            boot: 0,
            last: GENERATIONS,
        }
    }

    fn steps(&mut self, world: &World, steps: &mut Steps) {
        match world.writer {
            None => self.open_writer(world, steps),
            Some(writer) => {
                if world.ends > 0 {
                    let killed = World { writer: None, ends: world.ends - 1, ..*world };
                    steps.push((Event::WriterKilled, killed));
                }
                match writer.phase {
                    Phase::Adopting => self.adopt(world, writer, steps),
                    Phase::Listing => self.list_and_write(world, writer, steps),
                    Phase::Written => self.finish_data(world, writer, steps),
                    Phase::ListingAlive => self.list_alive_and_publish(world, writer, steps),
                    Phase::Published => self.finish_commit(world, writer, steps),
                }
            }
        }
        let gone = if world.boot == 0 { 0 } else { READERS - LATE_READERS };
        for which in gone..READERS {
            // Two readers that are alike have the same steps.
            if which == gone || world.readers[which] != world.readers[which - 1] {
                self.read(world, which, steps);
            }
        }
        if world.boot == 0 {
            self.lose_power(world, steps);
        }
    }

    fn fail_sync(world: &World, steps: &mut Steps) {
        if world.ends > 0 {
            steps.push((Event::SyncFails, world.failed()));
        }
    }

    fn open_writer(&self, world: &World, steps: &mut Steps) {
        let Some(id) = self.taken(world) else { return };
        let root = self.root(id);
        let mut opened = *world;
        if self.obeys(Rule::WriteBack) {
            Self::fail_sync(world, steps);
            opened = World { stuck_pages: 0, ..opened }.synced();
        }
        let mut phase = Phase::Listing;
        if root.synced {
            opened.acknowledged = root.generation();
        } else if self.obeys(Rule::OthersMadeDurable) {
            phase = Phase::Adopting;
        } else {
            opened.acknowledged = root.generation();
        }
        steps.push((Event::WriterOpens(root.commit), opened.with_writer(Writer::new(phase, id))));
    }

    fn adopt(&mut self, world: &World, writer: Writer, steps: &mut Steps) {
        let cell = usize::from(self.root(writer.root).cell);
        let mut back = *world;
        if self.obeys(Rule::WriteDataBack) {
            back.stuck_cells &= !(1 << cell);
        }
        self.make_durable(&back, writer, steps);
    }

    /// Syncs, and writes the newest root once more, as a synced one.
    fn make_durable(&mut self, world: &World, writer: Writer, steps: &mut Steps) {
        let root = self.root(writer.root);
        let mut settled = *world;
        if self.obeys(Rule::DeferredFirst) {
            Self::fail_sync(world, steps);
            settled = settled.synced();
        }
        let page = self.spare_page(world);
        let id = self.id(Root { synced: true, ..root });
        let writer = Writer { phase: Phase::Published, root: id, ..writer };
        let event = Event::Settles { commit: root.commit, page: page as u8 };
        steps.push((event, settled.with_root(page, id).with_writer(writer)));
    }

    /// The page that is written next.
    fn spare_page(&self, world: &World) -> usize {
        let in_page = |page: usize| self.root(world.pages[page]).generation();
        let (newest, synced) = (self.newest_page(world), self.synced_page(world));
        if !self.obeys(Rule::SparePage) {
            return newest;
        }
        let first_of = |page: usize| (0..PAGES).find(|&other| in_page(other) == in_page(page));
        let synced = if self.obeys(Rule::PagesNotGenerations) { synced } else { synced.and_then(first_of) };
        let others = (0..PAGES).filter(|&page| page != newest && Some(page) != synced);
        others.min_by_key(|&page| in_page(page)).expect("three pages, two of them taken")
    }

    fn newest_generation(&self, world: &World) -> u8 {
        self.root(self.newest(world)).generation()
    }

    fn list_and_write(&mut self, world: &World, writer: Writer, steps: &mut Steps) {
        let root = self.root(writer.root);
        let newest = self.newest_generation(world);
        if writer.next <= newest {
            let (generation, pinned) = (writer.next, self.is_pinned(world, writer.next));
            return steps.push((Event::Asks { generation, pinned }, world.with_writer(writer.found(pinned))));
        }
        if !root.synced {
            self.make_durable(world, writer, steps);
        }
        let before = if self.obeys(Rule::AboveAll) { newest } else { root.generation() };
        if before >= world.last + world.boot {
            return;
        }
        let commit = Commit::new(before + 1, world.boot);
        let synced = self.synced(world).map_or(0, |id| only(self.root(id).generation()));
        let mut kept = only(root.generation());
        for (rule, generations) in [
            (Rule::PinsKeep, writer.found),
            (Rule::AliveKeeps, root.alive.generations()),
            (Rule::SyncedRootKeeps, synced),
        ] {
            if self.obeys(rule) {
                kept |= generations;
            }
        }
        let listed = |cell: usize| root.freed[cell] != 0;
        let fresh = (0..CELLS).find(|&cell| cell != usize::from(root.cell) && !listed(cell));
        let reusable = (0..CELLS).filter(|&cell| listed(cell) && root.freed[cell] & kept == 0);
        for synced in [true, false] {
            // There is nothing to wait for if the commit is deferred.
            let phase = if synced { Phase::Written } else { Phase::ListingAlive };
            let mut written = |draft: Root| Writer::new(phase, self.id(draft));
            let unchanged = world.with_writer(written(root.successor(commit, synced)));
            steps.push((Event::ChangesNothing(commit), unchanged));
            for cell in reusable.clone().chain(fresh) {
                let changed = world.with_data(cell, commit);
                let changed = changed.with_writer(written(root.moved_to(cell, commit, synced)));
                steps.push((Event::Writes { commit, cell: cell as u8 }, changed));
            }
        }
    }

    fn finish_data(&self, world: &World, writer: Writer, steps: &mut Steps) {
        let mut done = *world;
        if self.obeys(Rule::DataFirst) {
            Self::fail_sync(world, steps);
            done = done.synced();
        }
        let writer = Writer::new(Phase::ListingAlive, writer.root);
        steps.push((Event::DataDone, done.with_writer(writer)));
    }

    fn list_alive_and_publish(&mut self, world: &World, writer: Writer, steps: &mut Steps) {
        let draft = self.root(writer.root);
        if draft.generation() > world.last {
            return;
        }
        // The root that this writer published, or opened with.
        let before = self.root(world.published);
        let mut known = before.alive.with(before.commit);
        if writer.next < draft.generation() {
            let generation = writer.next;
            let known = known.of_generation(generation).0 != 0 || !self.obeys(Rule::AliveWasKnown);
            let alive = known && self.is_pinned(world, generation);
            return steps
                .push((Event::AsksAlive { generation, alive }, world.with_writer(writer.found(alive))));
        }
        if !self.obeys(Rule::AliveWasKnown) {
            known = (0..draft.generation()).fold(known, |known, generation| {
                known.with(Commit::new(generation, 0)).with(Commit::new(generation, world.boot))
            });
        }
        let alive = (0..draft.generation()).filter(|&generation| writer.found & only(generation) != 0);
        let alive = alive.fold(0, |alive, generation| alive | known.of_generation(generation).0);
        let page = self.spare_page(world);
        let root = self.id(Root { alive: Commits(alive), ..draft });
        let writer = Writer { phase: Phase::Published, root, ..writer };
        let (commit, synced) = (draft.commit, draft.synced);
        let published = world.with_root(page, root).with_writer(writer);
        steps.push((Event::Publishes { commit, page: page as u8, synced }, published));
    }

    fn finish_commit(&self, world: &World, writer: Writer, steps: &mut Steps) {
        let Root { commit, synced, .. } = self.root(writer.root);
        let mut next = Writer::new(Phase::Listing, writer.root);
        if !self.obeys(Rule::ListAfterPublishing) {
            (next.found, next.next) = (writer.found, commit.generation() + 1);
        }
        let mut done = *world;
        if synced {
            if self.obeys(Rule::SyncedBeforeAcknowledged) {
                done = done.synced();
            }
            done.acknowledged = commit.generation();
            Self::fail_sync(world, steps);
        }
        steps.push((Event::Acknowledges { commit, synced }, done.with_writer(next)));
    }

    fn read(&self, world: &World, which: usize, steps: &mut Steps) {
        let newest = self.newest(world);
        let mut step = |event: fn(Commit) -> Event, id: RootId, reader: Reader, parcel: Option<RootId>| {
            let next = World { parcel, ..*world }.with_reader(which, reader);
            steps.push((event(self.root(id).commit), next));
        };
        let parcel = world.parcel;
        match world.readers[which] {
            Reader::Idle => {
                step(Event::Reads, newest, Reader::Read(newest, Source::Newest), parcel);
                if let Some(id) = parcel {
                    // It does not matter where a root comes from if it is not to be doubted.
                    let sure = self.is_sure(world, &self.root(id));
                    let source = if sure { Source::Newest } else { Source::HandedOver };
                    step(Event::TakesUp, id, Reader::Read(id, source), None);
                }
            }
            Reader::Read(id, source) => step(Event::Pins, id, Reader::Pinned(id, source), parcel),
            Reader::Pinned(id, source) => {
                let root = self.root(id);
                let whole = match source {
                    Source::Newest | Source::Synced => self.is_trusted(world, &root),
                    Source::HandedOver => {
                        self.is_sure(world, &root)
                            || world.cells[usize::from(root.cell)] == root.birth
                            || !self.obeys(Rule::DoubtHandedOver)
                    }
                };
                match (self.is_kept(world, id, source), whole, self.synced(world)) {
                    (true, true, _) => step(Event::Accepts, id, Reader::Accepted(id), parcel),
                    (true, false, Some(synced)) if source == Source::Newest => {
                        step(Event::Doubts, synced, Reader::Read(synced, Source::Synced), parcel);
                    }
                    _ => step(Event::GivesUp, id, Reader::Idle, parcel),
                }
            }
            Reader::Accepted(id) => {
                step(Event::LetsGo, id, Reader::Idle, parcel);
                if parcel.is_none() {
                    step(Event::HandsOver, id, Reader::Accepted(id), Some(id));
                }
            }
        }
    }

    /// Everything that a power loss may leave. A page has a root in any case, since it is there twice.
    fn lose_power(&mut self, world: &World, steps: &mut Steps) {
        let disk = (world.page_remains, world.cell_remains, world.parcel, world.acknowledged);
        if !self.losses.insert(disk) {
            return;
        }
        let [first, second, third] = &world.page_remains;
        for &a in first.roots() {
            for &b in second.roots() {
                for &c in third.roots() {
                    self.lose_cells(world, [a, b, c], steps);
                }
            }
        }
    }

    fn lose_cells(&self, world: &World, mut pages: [RootId; PAGES], steps: &mut Steps) {
        // Which page is which does not matter.
        pages.sort_unstable_by_key(|&id| std::cmp::Reverse((self.root(id).rank(), id)));
        // What nothing can reach is as good as nothing.
        let reach = |cell: usize, content: Commit| {
            let mut ids = pages.iter().chain(&world.parcel).map(|&id| self.root(id));
            ids.any(|root| usize::from(root.cell) == cell && root.birth == content)
        };
        let mut left = vec![[BLANK; CELLS]];
        for cell in 0..CELLS {
            let contents = (0..16).map(Commit).filter(|&content| world.cell_remains[cell].has(content));
            let mut contents: Vec<_> =
                contents.map(|content| if reach(cell, content) { content } else { BLANK }).collect();
            contents.sort_unstable();
            contents.dedup();
            left = left
                .iter()
                .flat_map(|cells| {
                    contents.iter().map(move |&content| {
                        let mut cells = *cells;
                        cells[cell] = content;
                        cells
                    })
                })
                .collect();
        }
        for cells in left {
            let mut next = World {
                pages,
                cells,
                page_remains: pages.map(Remains::certain),
                cell_remains: cells.map(|content| Commits::default().with(content)),
                stuck_pages: 0,
                stuck_cells: 0,
                writer: None,
                readers: [Reader::Idle; READERS],
                ends: LATE_ENDS,
                boot: 1,
                last: 0,
                ..*world
            };
            if let Some(taken) = self.taken(&next) {
                next.published = taken;
                next.last = self.newest_generation(&next) + LATE_GENERATIONS;
                let pages = pages.map(|id| self.root(id).commit);
                steps.push((Event::PowerLoss { pages, cells }, next));
            }
        }
    }

    /// The promise that this state breaks, if it breaks one.
    fn judge(&self, world: &World) -> Option<(Promise, String)> {
        for reader in &world.readers {
            let Reader::Accepted(id) = *reader else { continue };
            let root = self.root(id);
            let found = world.cells[usize::from(root.cell)];
            if found != root.birth {
                let what = format!("a snapshot of {} sees data {}", root.commit, content(found));
                return Some((Promise::Snapshot, what));
            }
        }
        if let Some(id) = self.taken(world) {
            let root = self.root(id);
            let published = self.root(world.published).commit;
            let found = world.cells[usize::from(root.cell)];
            if root.commit != published {
                let what = format!("{} is taken, but {published} was published", root.commit);
                return Some((Promise::Published, what));
            }
            if found != root.birth {
                let what = format!("{} is taken, but its data is {}", root.commit, content(found));
                return Some((Promise::Whole, what));
            }
        }
        let [first, second, third] = &world.page_remains;
        first.outcomes().find_map(|a| {
            second.outcomes().find_map(|b| third.outcomes().find_map(|c| self.judge_left(world, [a, b, c])))
        })
    }

    /// The same for a power loss that leaves these pages.
    fn judge_left(&self, world: &World, pages: [Option<RootId>; PAGES]) -> Option<(Promise, String)> {
        let left = pages.into_iter().flatten().map(|id| self.root(id));
        let trusted = left.filter(|root| root.synced || !self.obeys(Rule::DoubtDeferred));
        let Some(root) = trusted.max_by_key(Root::rank) else {
            return Some((Promise::Acknowledged, "a power loss leaves no root to take".into()));
        };
        let (generation, acknowledged) = (root.generation(), world.acknowledged);
        if generation < acknowledged {
            let what = format!("a power loss goes back to {}, {acknowledged} was acknowledged", root.commit);
            return Some((Promise::Acknowledged, what));
        }
        let remains = world.cell_remains[usize::from(root.cell)];
        (remains != Commits::default().with(root.birth)).then(|| {
            let what = format!(
                "a power loss leaves root {}, but its data may be: {}",
                root.commit,
                contents(remains).join(", ")
            );
            (Promise::Whole, what)
        })
    }
}

fn content(commit: Commit) -> String {
    match commit {
        BLANK => "blank".into(),
        TORN => "torn".into(),
        commit => format!("of {commit}"),
    }
}

fn contents(remains: Commits) -> Vec<String> {
    (0..16).map(Commit).filter(|&commit| remains.has(commit)).map(content).collect()
}

/// Goes through every state that can be reached, nearest first, up to the first that breaks a promise. Returns how
/// many states it met.
fn search(left_out: Option<Rule>) -> (usize, Option<Broken>) {
    let mut model = Model::new(left_out);
    let start = model.new_file();
    let mut seen = HashSet::from([start]);
    // How each state was first reached, by its number: from which one, by which step.
    let mut origins: Vec<Option<(u32, Event)>> = vec![None];
    let mut queue = VecDeque::from([(0, start)]);
    let mut steps = Steps::new();
    while let Some((number, world)) = queue.pop_front() {
        if let Some((promise, what)) = model.judge(&world) {
            let mut trace = Vec::new();
            let mut at = number;
            while let Some((from, event)) = origins[at as usize] {
                trace.push(event);
                at = from;
            }
            trace.reverse();
            return (seen.len(), Some(Broken { promise, what, trace }));
        }
        model.steps(&world, &mut steps);
        for (event, next) in steps.drain(..) {
            if seen.insert(next) {
                queue.push_back((origins.len() as u32, next));
                origins.push(Some((number, event)));
            }
        }
    }
    (seen.len(), None)
}

#[test]
fn every_promise_holds_in_every_order_of_events() {
    let (states, broken) = search(None);
    if let Some(broken) = broken {
        panic!("{states} states: {broken}");
    }
    println!("{states} states");
    assert!(states > 1_000_000, "only {states} states were met: steps are missing from the model");
}

#[test]
fn each_rule_left_out_breaks_the_promise_that_rests_on_it() {
    for rule in Rule::ALL {
        let (meaning, promise) = rule.meaning();
        let (states, broken) = search(Some(rule));
        let Some(broken) = broken else {
            panic!("without {rule:?} ({meaning}) every promise holds in all of {states} states");
        };
        println!("without {rule:?} ({meaning}), {states} states: {broken}");
        assert_eq!(broken.promise, promise, "without {rule:?} ({meaning}): {broken}");
    }
}
