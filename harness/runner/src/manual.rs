//! Man pages of the program and of each command, from the definitions of the command line.

use std::io;

use clap::Command;
use clap_mangen::Man;
use roff::{Roff, roman};

/// A man page of section 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The program and its subcommands with hyphens: `zoo-ledger-verify`.
    pub name: String,
    /// Its text in the macros of man(7).
    pub text: String,
}

impl Page {
    /// Name of its file.
    pub fn file(&self) -> String {
        format!("{}.1", self.name)
    }
}

/// The page of a command and those of its visible subcommands, the command first.
///
/// # Errors
/// A page is not text, which is a fault of the program.
pub fn pages(command: Command) -> io::Result<Vec<Page>> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    add(&command, None, &mut pages)?;
    Ok(pages)
}

fn add(command: &Command, parent: Option<&str>, pages: &mut Vec<Page>) -> io::Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    pages.push(Page { text: text(command, parent)?, name: name.clone() });
    let visible = command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set());
    visible.into_iter().try_for_each(|subcommand| add(subcommand, Some(&name), pages))
}

fn text(command: &Command, parent: Option<&str>) -> io::Result<String> {
    let version = concat!("zoo ", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.clone()).source(version).manual("zoo manual");
    let mut bytes = Vec::new();
    man.render_title(&mut bytes)?;
    man.render_name_section(&mut bytes)?;
    man.render_synopsis_section(&mut bytes)?;
    man.render_description_section(&mut bytes)?;
    man.render_options_section(&mut bytes)?;
    if command.get_subcommands().any(|subcommand| !subcommand.is_hide_set()) {
        man.render_subcommands_section(&mut bytes)?;
    }
    let after = command.get_after_long_help().or_else(|| command.get_after_help());
    let after = after.map(ToString::to_string).unwrap_or_default();
    bytes.extend(after_help(&after).render().into_bytes());
    if let Some(parent) = parent {
        let mut roff = Roff::new();
        roff.control("SH", ["SEE ALSO"]).text([roman(format!("{parent}(1)"))]);
        bytes.extend(roff.render().into_bytes());
    }
    let text = String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    // Each part begins with the same definitions of quotes.
    let definitions = Roff::new().render();
    Ok(in_ascii(&format!("{definitions}{}", text.replace(&definitions, ""))))
}

/// The text with other characters than ASCII as escapes. Programs that read man pages differ in the
/// encoding that they expect.
fn in_ascii(text: &str) -> String {
    let escape = |character: char| match character.is_ascii() {
        true => character.to_string(),
        false => format!("\\[u{:04X}]", u32::from(character)),
    };
    text.chars().map(escape).collect()
}

/// The text after the options: paragraphs, and blocks whose lines stay as they are. A block is a line
/// that ends with a colon, followed by indented lines; a page has a section for it.
fn after_help(text: &str) -> Roff {
    let mut roff = Roff::new();
    let mut has_notes = false;
    for block in text.split("\n\n").map(str::trim_end).filter(|block| !block.trim().is_empty()) {
        let (first, rest) = block.split_once('\n').unwrap_or((block, ""));
        if let (Some(heading), false) = (first.strip_suffix(':'), rest.is_empty()) {
            let heading =
                if heading == "Exit codes" { "EXIT STATUS".to_owned() } else { heading.to_uppercase() };
            roff.control("SH", [heading.as_str()]).control("nf", []);
            for line in rest.lines() {
                roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
            }
            roff.control("fi", []);
        } else {
            match std::mem::replace(&mut has_notes, true) {
                false => roff.control("SH", ["NOTES"]),
                true => roff.control("PP", []),
            };
            block.lines().for_each(|line| {
                roff.text([roman(line)]);
            });
        }
    }
    roff
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    /// Names of the visible commands, the program's first.
    fn names(command: &Command, above: &str, found: &mut Vec<String>) {
        let name = format!("{above}{}", command.get_name());
        let subcommands = command.get_subcommands().filter(|one| !one.is_hide_set());
        found.push(name.clone());
        subcommands.for_each(|one| names(one, &format!("{name}-"), found));
    }

    #[test]
    fn every_visible_command_has_a_page() {
        let mut expected = Vec::new();
        names(&Cli::command(), "", &mut expected);
        let pages = pages(Cli::command()).unwrap();
        let found: Vec<&String> = pages.iter().map(|page| &page.name).collect();
        assert_eq!(found, expected.iter().collect::<Vec<_>>());
        assert!(expected.len() > 35 && expected.contains(&"zoo-ledger-verify".to_owned()), "{expected:?}");
    }

    #[test]
    fn pages_have_the_sections_and_macros_of_man() {
        const MACROS: [&str; 13] =
            [".TH", ".SH", ".PP", ".TP", ".RS", ".RE", ".IP", ".nf", ".fi", ".br", ".ie", ".el", ".ds"];
        for page in pages(Cli::command()).unwrap() {
            let Page { name, text } = &page;
            let lines: Vec<&str> = text.lines().collect();
            let count = |wanted: &str| lines.iter().filter(|line| line.starts_with(wanted)).count();
            for line in lines.iter().filter(|line| line.starts_with(['.', '\''])) {
                assert!(MACROS.iter().any(|known| line.starts_with(known)), "{name}: {line}");
            }
            assert!(text.is_ascii(), "{name}");
            assert_eq!((count(".TH"), count(".ie")), (1, 1), "{name}");
            assert_eq!((count(".nf"), count(".RS")), (count(".fi"), count(".RE")), "{name}");
            let sections: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix(".SH ")).collect();
            assert_eq!(sections[..3], ["NAME", "SYNOPSIS", "DESCRIPTION"], "{name}");
            assert!(sections.contains(&"EXAMPLES"), "{name}: {sections:?}");
            let at = lines.iter().position(|line| *line == ".SH NAME").unwrap();
            let escaped = name.replace('-', "\\-");
            assert!(lines[at + 1].starts_with(&format!("{escaped} \\- ")), "{name}: {}", lines[at + 1]);
        }
    }

    #[test]
    fn other_characters_are_escapes() {
        assert_eq!(in_ascii("ARM,… α𝄞"), "ARM,\\[u2026] \\[u03B1]\\[u1D11E]");
    }

    #[test]
    fn examples_keep_their_lines_and_notes_are_filled() {
        let text =
            after_help("Examples:\n  zoo a -b\n  .c 'd'\n\nOne note\nof two lines.\n\nAnother.").render();
        let text = text.replace(&Roff::new().render(), "");
        assert_eq!(
            text,
            ".SH EXAMPLES\n.nf\nzoo a \\-b\n\\&.c \\*(Aqd\\*(Aq\n.fi\n.SH NOTES\nOne note\nof two lines.\n.PP\nAnother.\n"
        );
    }
}
