//! `zoo doctor`: checks the set-up of this machine.

use std::collections::BTreeMap;

use zoo_results::exit::Exit;

use crate::context::Context;
use crate::doctor::{Finding, State, examine};
use crate::error::Result;
use crate::output::{self, Format, columns, words};

pub fn run(context: &Context) -> Result<Exit> {
    let findings = examine(context);
    match context.format {
        Format::Json => output::write_document("doctor", &BTreeMap::from([("findings", &findings)]))?,
        Format::Human => output::write(&findings.iter().map(line).collect::<String>())?,
        other => {
            let mut table = columns(["subject", "state", "found", "mend"]);
            for finding in &findings {
                table.push(words([
                    finding.subject.to_owned(),
                    word(finding.state).to_lowercase(),
                    finding.found.clone(),
                    finding.mend.clone().unwrap_or_default(),
                ]));
            }
            output::write(&table.render(other))?;
        }
    }
    let faults: Vec<&Finding> = findings.iter().filter(|finding| finding.state == State::Fault).collect();
    Ok(match faults.as_slice() {
        [] => Exit::Ok,
        faults if faults.iter().any(|fault| ["device", "products"].contains(&fault.subject)) => Exit::Device,
        _ => Exit::Data,
    })
}

fn word(state: State) -> &'static str {
    match state {
        State::Ok => "ok",
        State::Note => "note",
        State::Fault => "FAULT",
    }
}

fn line(finding: &Finding) -> String {
    let mut text = format!("{:<5}  {:<13}  {}\n", word(finding.state), finding.subject, finding.found);
    if let Some(mend) = &finding.mend {
        text.push_str(&format!("{:<20}   -> {mend}\n", ""));
    }
    text
}
