//! The protocol of commits, pins and space reuse as a model, searched through every order in which its steps can happen.
//!
//! SPEC.md states the rules: §5 which root page a commit writes, which root is taken and which generations it lists as
//! alive; §13 when space may be used again and what readers and writers tell each other by locks. Tests of the code
//! meet a few orders of events; this one meets all of them, in a small world:
//!
//! * a **file** of three root pages and a few cells. One cell stands for everything that a generation reaches. What
//!   processes see and what the disk holds are kept apart: the disk may hold any write since the last sync, or half of
//!   one, in every combination;
//! * one **writer** at a time. It opens, asks for the pins of one generation after the other, takes a free cell or a
//!   fresh one (or changes nothing), and commits, either synced or deferred. It can be killed between any two steps,
//!   and the sync of a root page can fail, which ends it;
//! * **readers** that read a root, pin it, look again, and accept it or give up. One that has accepted can hand its root
//!   to another, which takes it up at any later time.
//!
//! Power can be lost in every state; nothing is modelled after that, since what is left then is all that counts. That a
//! deferred root is taken if everything behind it checks needs no state of its own: it is whole if so, and refused if not.
//!
//! The [promises](Promise): an accepted snapshot sees its data until it is let go; power loss takes back no synced commit
//! that was acknowledged; the root that is taken after a power loss is whole.
//!
//! The first test holds the protocol to them. The second leaves out one [`Rule`] at a time and wants the promise broken
//! that the rule is there for: no rule is idle, and the model sees what it is meant to see.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;

/// The last generation that is committed; the first is 1.
const GENERATIONS: u8 = 3;
const CELLS: usize = 4;
const READERS: usize = 2;
const KILLS: u8 = 1;
const FAILED_SYNCS: u8 = 1;
const PAGES: usize = 3;

/// What the protocol demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    DataFirst,
    SyncedBeforeAcknowledged,
    WriteBack,
    SparePage,
    DoubtDeferred,
    LookAgain,
    PinsKeep,
    SyncedRootKeeps,
    ListAfterPublishing,
    AliveKeeps,
    AliveWasKnown,
}

impl Rule {
    const ALL: [Self; 11] = [
        Self::DataFirst,
        Self::SyncedBeforeAcknowledged,
        Self::WriteBack,
        Self::SparePage,
        Self::DoubtDeferred,
        Self::LookAgain,
        Self::PinsKeep,
        Self::SyncedRootKeeps,
        Self::ListAfterPublishing,
        Self::AliveKeeps,
        Self::AliveWasKnown,
    ];

    /// The rule in words, and the promise that rests on it.
    fn meaning(self) -> (&'static str, Promise) {
        use Promise::{Acknowledged, Snapshot, Whole};
        match self {
            Self::DataFirst => {
                ("the data of a synced commit is on the disk before its root is written", Whole)
            }
            Self::SyncedBeforeAcknowledged => {
                ("a synced commit is acknowledged only when its root page is on the disk", Acknowledged)
            }
            Self::WriteBack => ("whoever opens for writing writes the root pages back and syncs them", Whole),
            Self::SparePage => {
                ("a commit spares the pages of the newest root and of the newest synced one", Acknowledged)
            }
            Self::DoubtDeferred => ("a deferred root is not trusted after a power loss", Whole),
            Self::LookAgain => ("a reader looks for the newest root again once it has its pin", Snapshot),
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
    /// A power loss takes back no synced commit that was acknowledged.
    Acknowledged,
    /// The root that is taken after a power loss has its data.
    Whole,
}

/// A set of generations, bit g for generation g.
type Generations = u8;

const fn only(generation: u8) -> Generations {
    1 << generation
}

/// What a cell holds: the generation that wrote it, or one of these.
const BLANK: u8 = 6;
const TORN: u8 = 7;
const _: () = assert!(GENERATIONS < BLANK);

/// A root record.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Root {
    generation: u8,
    /// Where its data is, and the generation that wrote it.
    cell: u8,
    birth: u8,
    /// For each cell the generations that can still see it although it is free; none for one that is not in the list.
    freed: [Generations; CELLS],
    alive: Generations,
    synced: bool,
}

impl Root {
    /// The next generation with the same data, before it is known what is alive.
    fn successor(self, synced: bool) -> Self {
        Self { generation: self.generation + 1, alive: 0, synced, ..self }
    }

    /// The next generation with data in another cell; the cell of this one becomes free.
    fn moved_to(self, cell: usize, synced: bool) -> Self {
        let mut next = self.successor(synced);
        next.freed[cell] = 0;
        next.freed[usize::from(self.cell)] = only(next.generation) - only(self.birth);
        Self { cell: cell as u8, birth: next.generation, ..next }
    }

    fn is_or_lists(&self, generation: u8) -> bool {
        (only(self.generation) | self.alive) & only(generation) != 0
    }
}

/// Stands for a [`Root`], to keep states small.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct RootId(u16);

/// The roots of which the disk may hold any in one page. If it is more than one, the page may also be torn.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Remains {
    roots: [RootId; GENERATIONS as usize],
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

    /// What a power loss may leave; `None` is a torn page.
    fn outcomes(&self) -> impl Iterator<Item = Option<RootId>> {
        let roots = self.roots.iter().take(self.count.into()).copied().map(Some);
        roots.chain((self.count > 1).then_some(None))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Phase {
    /// Lists pins, then takes space and writes data. `root` is the newest one.
    Listing,
    /// Has written its data. From here on `root` is the one to be published.
    Written,
    /// Lists pins for the new root.
    ListingAlive,
    /// Has written the root to this page.
    Published(u8),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Writer {
    phase: Phase,
    root: RootId,
    /// The generation of the newest synced root.
    synced: u8,
    /// What the listing under way has found, and the generation that it asks for next.
    found: Generations,
    next: u8,
}

impl Writer {
    fn listing(phase: Phase, root: RootId, synced: u8) -> Self {
        Self { phase, root, synced, found: 0, next: 1 }
    }

    fn found(self, yes: bool) -> Self {
        let found = if yes { self.found | only(self.next) } else { self.found };
        Self { found, next: self.next + 1, ..self }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Reader {
    Idle,
    Read(RootId),
    Pinned(RootId),
    Accepted(RootId),
}

/// A state of everything.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct World {
    /// What processes see.
    pages: [RootId; PAGES],
    cells: [u8; CELLS],
    /// What the disk may hold: for a cell, one bit for each content.
    page_remains: [Remains; PAGES],
    cell_remains: [u8; CELLS],
    /// Pages whose sync failed, one bit each: syncing again does nothing for them unless they are written again.
    stuck: u8,
    writer: Option<Writer>,
    /// Sorted, since it does not matter which reader is which.
    readers: [Reader; READERS],
    /// A root that an accepted snapshot has handed over, until it is taken up.
    parcel: Option<RootId>,
    kills: u8,
    failed_syncs: u8,
    /// The newest synced generation that a caller was told of.
    acknowledged: u8,
}

impl World {
    fn synced(mut self) -> Self {
        self.cell_remains = self.cells.map(|content| 1 << content);
        for (page, remains) in self.page_remains.iter_mut().enumerate() {
            if self.stuck & 1 << page == 0 {
                *remains = Remains::certain(self.pages[page]);
            }
        }
        self
    }

    fn with_writer(self, writer: Writer) -> Self {
        Self { writer: Some(writer), ..self }
    }

    fn with_data(mut self, cell: usize, generation: u8) -> Self {
        self.cells[cell] = generation;
        self.cell_remains[cell] |= 1 << generation | 1 << TORN;
        self
    }

    fn with_root(mut self, page: usize, root: RootId) -> Self {
        self.pages[page] = root;
        self.page_remains[page].add(root);
        self.stuck &= !(1 << page);
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
    WriterOpens(u8),
    WriterKilled,
    Asks { generation: u8, pinned: bool },
    AsksAlive { generation: u8, alive: bool },
    ChangesNothing(u8),
    Writes { generation: u8, cell: u8 },
    DataDone { synced: bool },
    Publishes { generation: u8, page: u8, synced: bool },
    Acknowledges { generation: u8, synced: bool },
    SyncFails { page: u8 },
    Reads(u8),
    TakesUp(u8),
    Pins(u8),
    Accepts(u8),
    GivesUp(u8),
    LetsGo(u8),
    HandsOver(u8),
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = |synced: bool| if synced { "synced" } else { "deferred" };
        match *self {
            Self::WriterOpens(generation) => write!(f, "writer: opens at generation {generation}"),
            Self::WriterKilled => write!(f, "writer: is killed"),
            Self::Asks { generation, pinned } => write!(f, "writer: is {generation} pinned? {pinned}"),
            Self::AsksAlive { generation, alive } => {
                write!(f, "writer: is {generation} to be listed as alive? {alive}")
            }
            Self::ChangesNothing(generation) => {
                write!(f, "writer: leaves the data as it is for {generation}")
            }
            Self::Writes { generation, cell } => {
                write!(f, "writer: puts the data of {generation} in cell {cell}")
            }
            Self::DataDone { synced } => write!(f, "writer: has written data for a {} commit", kind(synced)),
            Self::Publishes { generation, page, synced } => {
                write!(f, "writer: writes {} root {generation} to page {page}", kind(synced))
            }
            Self::Acknowledges { generation, synced } => {
                write!(f, "writer: acknowledges {} commit {generation}", kind(synced))
            }
            Self::SyncFails { page } => write!(f, "writer: fails to sync page {page} and ends"),
            Self::Reads(generation) => write!(f, "reader: reads root {generation}"),
            Self::TakesUp(generation) => write!(f, "reader: takes up root {generation} from another"),
            Self::Pins(generation) => write!(f, "reader: pins {generation}"),
            Self::Accepts(generation) => write!(f, "reader: accepts {generation}"),
            Self::GivesUp(generation) => write!(f, "reader: gives up {generation}"),
            Self::LetsGo(generation) => write!(f, "reader: lets go of {generation}"),
            Self::HandsOver(generation) => write!(f, "reader: hands over {generation}"),
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

struct Model {
    left_out: Option<Rule>,
    roots: Vec<Root>,
    ids: HashMap<Root, RootId>,
}

impl Model {
    fn new(left_out: Option<Rule>) -> Self {
        Self { left_out, roots: Vec::new(), ids: HashMap::new() }
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

    fn generation(&self, id: RootId) -> u8 {
        self.root(id).generation
    }

    /// The page of the newest root.
    fn newest_page(&self, world: &World) -> usize {
        (0..PAGES).rev().max_by_key(|&page| self.generation(world.pages[page])).expect("there are pages")
    }

    fn newest(&self, world: &World) -> RootId {
        world.pages[self.newest_page(world)]
    }

    fn is_pinned(&self, world: &World, generation: u8) -> bool {
        world.readers.iter().any(|reader| match *reader {
            Reader::Pinned(root) | Reader::Accepted(root) => self.generation(root) == generation,
            Reader::Idle | Reader::Read(_) => false,
        })
    }

    /// A new file: generation 1 in page 0, generation 0 in the others, everything synced.
    fn new_file(&mut self) -> World {
        let zero = Root { generation: 0, cell: 0, birth: 0, freed: [0; CELLS], alive: 0, synced: true };
        let (zero, one) = (self.id(zero), self.id(zero.successor(true)));
        let pages = [one, zero, zero];
        let mut cells = [BLANK; CELLS];
        cells[0] = 0;
        World {
            pages,
            cells,
            page_remains: pages.map(Remains::certain),
            cell_remains: cells.map(|content| 1 << content),
            stuck: 0,
            writer: None,
            readers: [Reader::Idle; READERS],
            parcel: None,
            kills: KILLS,
            failed_syncs: FAILED_SYNCS,
            acknowledged: 1,
        }
    }

    fn steps(&mut self, world: &World, steps: &mut Steps) {
        match world.writer {
            None => self.open_writer(world, steps),
            Some(writer) => {
                if world.kills > 0 {
                    let killed = World { writer: None, kills: world.kills - 1, ..*world };
                    steps.push((Event::WriterKilled, killed));
                }
                match writer.phase {
                    Phase::Listing => self.list_and_write(world, writer, steps),
                    Phase::Written => self.finish_data(world, writer, steps),
                    Phase::ListingAlive => self.list_alive_and_publish(world, writer, steps),
                    Phase::Published(page) => self.finish_commit(world, writer, page, steps),
                }
            }
        }
        for which in 0..READERS {
            // Two readers that are alike have the same steps.
            if which == 0 || world.readers[which] != world.readers[which - 1] {
                self.read(world, which, steps);
            }
        }
    }

    fn open_writer(&self, world: &World, steps: &mut Steps) {
        let root = self.newest(world);
        let synced = world.pages.iter().map(|&id| self.root(id)).filter(|root| root.synced);
        let synced = synced.map(|root| root.generation).max().expect("the newest synced root is spared");
        let opened = if self.obeys(Rule::WriteBack) { World { stuck: 0, ..*world }.synced() } else { *world };
        let writer = Writer::listing(Phase::Listing, root, synced);
        steps.push((Event::WriterOpens(self.generation(root)), opened.with_writer(writer)));
    }

    fn list_and_write(&mut self, world: &World, writer: Writer, steps: &mut Steps) {
        let root = self.root(writer.root);
        if writer.next <= root.generation {
            let (generation, pinned) = (writer.next, self.is_pinned(world, writer.next));
            return steps.push((Event::Asks { generation, pinned }, world.with_writer(writer.found(pinned))));
        }
        if root.generation == GENERATIONS {
            return;
        }
        let mut kept = only(root.generation);
        for (rule, generations) in [
            (Rule::PinsKeep, writer.found),
            (Rule::AliveKeeps, root.alive),
            (Rule::SyncedRootKeeps, only(writer.synced)),
        ] {
            if self.obeys(rule) {
                kept |= generations;
            }
        }
        let listed = |cell: usize| root.freed[cell] != 0;
        let fresh = (0..CELLS).find(|&cell| cell != usize::from(root.cell) && !listed(cell));
        let reusable = (0..CELLS).filter(|&cell| listed(cell) && root.freed[cell] & kept == 0);
        let generation = root.generation + 1;
        for synced in [true, false] {
            let mut written = |draft: Root| Writer { phase: Phase::Written, root: self.id(draft), ..writer };
            let unchanged = world.with_writer(written(root.successor(synced)));
            steps.push((Event::ChangesNothing(generation), unchanged));
            for cell in reusable.clone().chain(fresh) {
                let changed = world.with_data(cell, generation);
                let changed = changed.with_writer(written(root.moved_to(cell, synced)));
                steps.push((Event::Writes { generation, cell: cell as u8 }, changed));
            }
        }
    }

    fn finish_data(&self, world: &World, writer: Writer, steps: &mut Steps) {
        let synced = self.root(writer.root).synced;
        let done = if synced && self.obeys(Rule::DataFirst) { world.synced() } else { *world };
        let writer = Writer::listing(Phase::ListingAlive, writer.root, writer.synced);
        steps.push((Event::DataDone { synced }, done.with_writer(writer)));
    }

    fn list_alive_and_publish(&mut self, world: &World, writer: Writer, steps: &mut Steps) {
        let draft = self.root(writer.root);
        let newest_page = self.newest_page(world);
        let before = self.root(world.pages[newest_page]);
        if writer.next < draft.generation {
            let generation = writer.next;
            let known = before.is_or_lists(generation) || !self.obeys(Rule::AliveWasKnown);
            let alive = known && self.is_pinned(world, generation);
            return steps
                .push((Event::AsksAlive { generation, alive }, world.with_writer(writer.found(alive))));
        }
        let in_page = |page: usize| self.generation(world.pages[page]);
        let spare =
            (0..PAGES).filter(|&page| in_page(page) != before.generation && in_page(page) != writer.synced);
        let spare = spare.min_by_key(|&page| in_page(page)).expect("three pages, two of them taken");
        let page = if self.obeys(Rule::SparePage) { spare } else { newest_page };
        let root = self.id(Root { alive: writer.found, ..draft });
        let writer = Writer { phase: Phase::Published(page as u8), root, ..writer };
        let (generation, synced) = (draft.generation, draft.synced);
        let published = world.with_root(page, root).with_writer(writer);
        steps.push((Event::Publishes { generation, page: page as u8, synced }, published));
    }

    fn finish_commit(&self, world: &World, writer: Writer, page: u8, steps: &mut Steps) {
        let Root { generation, synced, .. } = self.root(writer.root);
        let mut next = Writer::listing(Phase::Listing, writer.root, writer.synced);
        if !self.obeys(Rule::ListAfterPublishing) {
            (next.found, next.next) = (writer.found, generation + 1);
        }
        let mut done = *world;
        if synced {
            next.synced = generation;
            if self.obeys(Rule::SyncedBeforeAcknowledged) {
                done = done.synced();
            }
            done.acknowledged = generation;
            if world.failed_syncs > 0 {
                let failed_syncs = world.failed_syncs - 1;
                let failed = World { writer: None, stuck: world.stuck | 1 << page, failed_syncs, ..*world };
                steps.push((Event::SyncFails { page }, failed));
            }
        }
        steps.push((Event::Acknowledges { generation, synced }, done.with_writer(next)));
    }

    fn read(&self, world: &World, which: usize, steps: &mut Steps) {
        let newest = self.newest(world);
        let mut step = |event: fn(u8) -> Event, id: RootId, reader: Reader, parcel: Option<RootId>| {
            let next = World { parcel, ..*world }.with_reader(which, reader);
            steps.push((event(self.generation(id)), next));
        };
        let parcel = world.parcel;
        match world.readers[which] {
            Reader::Idle => {
                step(Event::Reads, newest, Reader::Read(newest), parcel);
                if let Some(id) = parcel {
                    step(Event::TakesUp, id, Reader::Read(id), None);
                }
            }
            Reader::Read(id) => step(Event::Pins, id, Reader::Pinned(id), parcel),
            Reader::Pinned(id) => {
                if self.root(newest).is_or_lists(self.generation(id)) || !self.obeys(Rule::LookAgain) {
                    step(Event::Accepts, id, Reader::Accepted(id), parcel);
                } else {
                    step(Event::GivesUp, id, Reader::Idle, parcel);
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

    /// The promise that this state breaks, if it breaks one.
    fn judge(&self, world: &World) -> Option<(Promise, String)> {
        for reader in &world.readers {
            let Reader::Accepted(id) = *reader else { continue };
            let root = self.root(id);
            let content = world.cells[usize::from(root.cell)];
            if content != root.birth {
                let what = format!("a snapshot of {} sees the data of {content}", root.generation);
                return Some((Promise::Snapshot, what));
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
        let Some(root) = trusted.max_by_key(|root| root.generation) else {
            return Some((Promise::Acknowledged, "a power loss leaves no root to take".into()));
        };
        let (generation, acknowledged) = (root.generation, world.acknowledged);
        if generation < acknowledged {
            let what = format!("a power loss goes back to {generation}, {acknowledged} was acknowledged");
            return Some((Promise::Acknowledged, what));
        }
        let remains = world.cell_remains[usize::from(root.cell)];
        (remains != 1 << root.birth).then(|| {
            let what = format!(
                "a power loss leaves root {generation}, but its data may be: {}",
                contents(remains).join(", ")
            );
            (Promise::Whole, what)
        })
    }
}

fn contents(remains: u8) -> Vec<String> {
    let name = |content| match content {
        BLANK => "blank".into(),
        TORN => "torn".into(),
        generation => format!("of {generation}"),
    };
    (0..8).filter(|content| remains & 1 << content != 0).map(name).collect()
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
