//! Which entries of the home are removed, and which are kept and why.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use super::entries::{Entry, Subject, has_ended};
use super::kind::Kind;

/// Seconds of a day.
const DAY: u64 = 24 * 3600;

/// What the user wants to remove.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// Kinds whose entries are removed unless something needs them.
    pub kinds: Vec<Kind>,
    /// Minimum number of days since the last write.
    pub older: Option<u32>,
    /// Number of newest runs to keep of each recipe, tier, arm and seed.
    pub keep: Option<usize>,
    /// Whether to remove what records, runs or evaluations need.
    pub force: bool,
}

/// An entry, and what happens to it.
#[derive(Debug, Clone)]
pub struct Planned {
    pub entry: Entry,
    /// Whether it is removed.
    pub remove: bool,
    /// Why it is removed or kept.
    pub why: String,
}

/// Decides on all entries of the chosen kinds, of temporary files, and of prepared data that no
/// recipe can use. Runs must be listed newest first.
pub fn plan(entries: Vec<Entry>, choice: &Choice, now: SystemTime) -> Vec<Planned> {
    let mut places: BTreeMap<(String, String, u64), usize> = BTreeMap::new();
    let mut planned = Vec::new();
    for entry in entries {
        let place = match &entry.subject {
            Subject::Run { group: Some(group), state, .. } if entry.kind == Kind::Runs => {
                let place = places.entry(group.clone()).or_default();
                // A run that has not ended does not stand in for one that has.
                *place += usize::from(has_ended(*state));
                Some(*place + usize::from(!has_ended(*state)))
            }
            _ => None,
        };
        let Some(decision) = decide(&entry, choice, place, now) else { continue };
        let (remove, why) = match decision {
            Ok(why) => (true, why),
            Err(why) => (false, why),
        };
        planned.push(Planned { entry, remove, why });
    }
    // The checkpoints of a run that is removed go with it.
    let removed: Vec<_> = planned.iter().filter(|one| one.remove).flat_map(|one| &one.entry.paths).collect();
    let removed: Vec<_> = removed.into_iter().cloned().collect();
    planned.retain(|one| {
        one.entry.kind != Kind::Checkpoints
            || !one
                .entry
                .paths
                .iter()
                .any(|path| removed.iter().any(|folder| path != folder && path.starts_with(folder)))
    });
    planned
}

/// Why an entry is removed, or, as an error, why it is kept. `None` if the user did not ask about it.
/// `place` is the place of a run among those of its recipe, arm and seed, newest first, from 1.
fn decide(
    entry: &Entry,
    choice: &Choice,
    place: Option<usize>,
    now: SystemTime,
) -> Option<Result<String, String>> {
    let always = match &entry.subject {
        Subject::Temporary(_) => Some("left by a dead process"),
        Subject::Prepared { is_orphan: true } => Some("no recipe of this program has its corpus"),
        _ => None,
    };
    if always.is_none() && !choice.kinds.contains(&entry.kind) {
        return None;
    }
    if let Some(busy) = &entry.busy {
        return Some(Err(busy.clone()));
    }
    if let Some(why) = always {
        return Some(Ok(why.to_owned()));
    }
    if !entry.needed.is_empty() && !choice.force {
        return Some(Err(format!("needed: {}", entry.needed.join("; "))));
    }
    if entry.kind == Kind::Runs {
        let Some(place) = place else { return Some(Err("its identity cannot be read".to_owned())) };
        if choice.keep.is_some_and(|keep| place <= keep) {
            return Some(Err(match place {
                1 => "the newest of its arm and seed".to_owned(),
                _ => format!("number {place} of its arm and seed, newest first"),
            }));
        }
    }
    let age = entry.extent.age(now).unwrap_or_default();
    if let Some(days) = choice.older.filter(|days| age < Duration::from_secs(u64::from(*days) * DAY)) {
        let since = age.as_secs() / DAY;
        let word = if days == 1 { "day" } else { "days" };
        return Some(Err(format!("written {since} days ago, within {days} {word}")));
    }
    Some(Ok(match (entry.kind, entry.needed.is_empty()) {
        (_, false) => format!("forced, needed: {}", entry.needed.join("; ")),
        (Kind::Runs, true) => "no record names it".to_owned(),
        (Kind::Checkpoints, true) => "evaluation does not need it".to_owned(),
        (Kind::Hypotheses, true) => "no record names it".to_owned(),
        (Kind::Downloads, true) => "no run or record uses it; it can be fetched again".to_owned(),
        (Kind::Corpora, true) => "no run or record uses it; it can be unpacked again".to_owned(),
        (Kind::Prepared, true) => "no run uses it; it can be prepared again".to_owned(),
        (_, true) => "it can be made again".to_owned(),
    }))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::extent::Extent;
    use super::*;
    use crate::runs::State;

    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(100 * DAY)
    }

    fn entry(kind: Kind, name: &str, days: u64) -> Entry {
        let written = Some(now() - Duration::from_secs(days * DAY));
        Entry {
            kind,
            name: name.to_owned(),
            paths: vec![PathBuf::from(name)],
            extent: Extent { files: 1, bytes: 1, written },
            frees: 1,
            of: String::new(),
            needed: Vec::new(),
            busy: None,
            subject: Subject::Plain,
        }
    }

    fn run(name: &str, seed: u64, days: u64) -> Entry {
        let group = Some(("toy".to_owned(), "fp32".to_owned(), seed));
        let subject = Subject::Run { folder: PathBuf::from(name), group, state: State::Evaluated };
        Entry { subject, ..entry(Kind::Runs, name, days) }
    }

    fn removed(entries: &[Entry], choice: &Choice) -> Vec<String> {
        let planned = plan(entries.to_vec(), choice, now());
        planned.into_iter().filter(|one| one.remove).map(|one| one.entry.name).collect()
    }

    fn of(kinds: &[Kind]) -> Choice {
        Choice { kinds: kinds.to_vec(), ..Choice::default() }
    }

    #[test]
    fn without_a_kind_only_useless_entries_are_removed() {
        let orphan = |is_orphan| Subject::Prepared { is_orphan };
        let entries = [
            Entry { subject: orphan(true), ..entry(Kind::Prepared, "orphan", 0) },
            Entry { subject: orphan(false), ..entry(Kind::Prepared, "other", 90) },
            run("run", 1, 90),
            entry(Kind::Downloads, "download", 90),
        ];
        assert_eq!(removed(&entries, &of(&[])), ["orphan"]);
        assert_eq!(plan(entries.to_vec(), &of(&[]), now()).len(), 1, "nothing is said of other kinds");
        assert_eq!(removed(&entries, &of(&[Kind::Prepared])), ["orphan", "other"]);
    }

    #[test]
    fn what_is_needed_is_removed_with_force_only_and_what_is_busy_never() {
        let needed = Entry { needed: vec!["record 3".to_owned()], ..entry(Kind::Hypotheses, "needed", 9) };
        let busy = Entry { busy: Some("a process".to_owned()), ..entry(Kind::Hypotheses, "busy", 9) };
        let entries = [needed, busy, entry(Kind::Hypotheses, "free", 9)];
        let choice = of(&[Kind::Hypotheses]);
        assert_eq!(removed(&entries, &choice), ["free"]);
        assert_eq!(plan(entries.to_vec(), &choice, now())[0].why, "needed: record 3");
        assert_eq!(removed(&entries, &Choice { force: true, ..choice }), ["needed", "free"]);
    }

    #[test]
    fn the_newest_runs_of_each_arm_and_seed_are_kept() {
        let entries = [run("new", 1, 1), run("other-seed", 2, 5), run("mid", 1, 10), run("old", 1, 40)];
        let choice = |keep| Choice { keep: Some(keep), ..of(&[Kind::Runs]) };
        assert_eq!(removed(&entries, &choice(1)), ["mid", "old"]);
        assert_eq!(removed(&entries, &choice(2)), ["old"]);
        let old = Choice { older: Some(30), ..choice(1) };
        assert_eq!(removed(&entries, &old), ["old"]);
        assert_eq!(removed(&entries, &Choice { force: true, ..choice(2) }), ["old"]);
        let unknown = Subject::Run { folder: PathBuf::from("x"), group: None, state: State::Damaged };
        assert_eq!(removed(&[Entry { subject: unknown, ..run("x", 1, 90) }], &choice(1)), [""; 0]);
    }

    #[test]
    fn a_run_that_has_not_ended_does_not_take_the_place_of_one_that_has() {
        let begun = |name: &str| {
            let subject = Subject::Run {
                folder: PathBuf::from(name),
                group: Some(("toy".to_owned(), "fp32".to_owned(), 1)),
                state: State::Interrupted,
            };
            let needed = vec!["the run is interrupted".to_owned()];
            Entry { subject, needed, ..run(name, 1, 1) }
        };
        let entries = [begun("begun"), run("new", 1, 5), run("old", 1, 9)];
        let choice = Choice { keep: Some(1), ..of(&[Kind::Runs]) };
        assert_eq!(removed(&entries, &choice), ["old"]);
    }

    #[test]
    fn an_entry_that_was_written_lately_is_kept() {
        let entries = [entry(Kind::Downloads, "new", 29), entry(Kind::Downloads, "old", 31)];
        let choice = Choice { older: Some(30), ..of(&[Kind::Downloads]) };
        assert_eq!(removed(&entries, &choice), ["old"]);
        let planned = plan(entries.to_vec(), &choice, now());
        assert_eq!(planned[0].why, "written 29 days ago, within 30 days");
    }

    #[test]
    fn the_checkpoints_of_a_removed_run_are_not_removed_twice() {
        let old = run("runs/toy/a", 1, 40);
        let checkpoints = |run: &str| Entry {
            paths: vec![PathBuf::from(run).join("checkpoints/state-1.safetensors")],
            ..entry(Kind::Checkpoints, run, 40)
        };
        let entries =
            [checkpoints("runs/toy/new"), checkpoints("runs/toy/a"), run("runs/toy/new", 1, 1), old];
        let choice = Choice { keep: Some(1), ..of(&[Kind::Runs, Kind::Checkpoints]) };
        assert_eq!(removed(&entries, &choice), ["runs/toy/new", "runs/toy/a"]);
    }
}
