//! Compares `docs/verdicts.md` with the code.

use zoo_results::exit::Exit;
use zoo_results::statistics::LookPlan;

fn page() -> String {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/verdicts.md")).unwrap()
}

#[test]
fn the_table_of_exit_codes_is_the_enum_s() {
    let (page, table) = (page(), Exit::markdown_table());
    assert!(page.contains(&table), "put this into docs/verdicts.md:\n{table}");
    assert_eq!(page.matches("| code |").count(), 1);
}

#[test]
fn the_levels_of_the_default_schedule() {
    let looks = LookPlan::default().looks();
    let row = |title: &str, text: Vec<String>| format!("| {title} | {} |", text.join(" | "));
    for row in [
        row("seeds", looks.iter().map(|look| look.seeds.to_string()).collect()),
        row("level", looks.iter().map(|look| format!("{:.2} %", 100.0 * look.own_alpha)).collect()),
    ] {
        assert!(page().contains(&row), "put this into docs/verdicts.md:\n{row}");
    }
}
