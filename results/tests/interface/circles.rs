//! No file of this crate uses itself through others: data flows one way.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Path of a module, from the crate's root.
type Module = Vec<String>;

/// The sources by module.
fn sources(folder: &Path, above: &Module, found: &mut BTreeMap<Module, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let module = [above.clone(), vec![name.clone()]].concat();
        match path.extension().and_then(|ending| ending.to_str()) {
            None => sources(&path, &module, found),
            Some("rs") if name.ends_with("_tests") => {}
            Some("rs") => {
                let own = matches!(name.as_str(), "lib" | "mod");
                found.insert(if own { above.clone() } else { module }, fs::read_to_string(&path).unwrap());
            }
            Some(_) => {}
        }
    }
}

/// The paths of a tree of uses: `a::{b, c::d}` is `a::b` and `a::c::d`.
fn paths(tree: &str) -> Vec<String> {
    let Some((before, rest)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default();
        return vec![path.trim().to_owned()];
    };
    let inner = rest.trim_end().strip_suffix('}').unwrap_or(rest);
    let (mut depth, mut parts) = (0, vec![String::new()]);
    for c in inner.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        parts.last_mut().unwrap().push(c);
    }
    let parts = parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty());
    parts.flat_map(|part| paths(&format!("{}{part}", before.trim()))).collect()
}

/// The modules that a source uses. Its tests do not count.
fn used(own: &Module, text: &str, all: &BTreeMap<Module, String>) -> BTreeSet<Module> {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code: String = lines.flat_map(|line| [line, "\n"]).collect();
    let statements = code.split(';').filter_map(|statement| {
        let start = statement.rfind("use ")?;
        let is_word = statement[..start].ends_with(['\n', ' ']) || start == 0;
        is_word.then(|| paths(&statement[start + 4..]))
    });
    let target = |path: String| {
        let words: Vec<&str> = path.split("::").map(str::trim).collect();
        let ups = words.iter().take_while(|word| **word == "super").count();
        let (mut module, words) = match words.first()? {
            &"crate" => (Vec::new(), &words[1..]),
            &"self" => (own.clone(), &words[1..]),
            &"super" => (own[..own.len().checked_sub(ups)?].to_vec(), &words[ups..]),
            first if all.contains_key(&[own.clone(), vec![(*first).to_owned()]].concat()) => {
                (own.clone(), &words[..])
            }
            _ => return None,
        };
        for word in words {
            let below = [module.clone(), vec![(*word).to_owned()]].concat();
            if !all.contains_key(&below) {
                break;
            }
            module = below;
        }
        (module != *own).then_some(module)
    };
    statements.flatten().filter_map(target).collect()
}

#[test]
fn no_file_uses_itself_through_others() {
    let mut all = BTreeMap::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &Vec::new(), &mut all);
    let mut uses: BTreeMap<&Module, BTreeSet<Module>> =
        all.iter().map(|(own, text)| (own, used(own, text, &all))).collect();
    let edges: usize = uses.values().map(BTreeSet::len).sum();
    assert!(uses.len() > 100 && edges > 300, "{} files, {edges} uses", uses.len());
    // Files that use no other that is left, and those that no other uses, are taken away until only
    // circles are left, and files between two circles.
    loop {
        let left: BTreeSet<Module> = uses.keys().map(|module| (*module).clone()).collect();
        uses.values_mut().for_each(|used| used.retain(|module| left.contains(module)));
        let named: BTreeSet<Module> = uses.values().flatten().cloned().collect();
        let before = uses.len();
        uses.retain(|own, used| !used.is_empty() && named.contains(*own));
        if uses.len() == before {
            break;
        }
    }
    let names = |module: &Module| module.join("::");
    let circles: Vec<String> = (uses.iter())
        .map(|(own, used)| {
            format!("{} uses {}", names(own), used.iter().map(names).collect::<Vec<_>>().join(", "))
        })
        .collect();
    assert!(circles.is_empty(), "these files use each other in a circle:\n{}", circles.join("\n"));
}
