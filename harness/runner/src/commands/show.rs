//! `zoo show`: shows one recipe.

use serde_json::{Value, json};
use zoo_datasets::corpora::CorpusDefinition;
use zoo_recipes::untrusted::{escaped, one_line};
use zoo_recipes::{Document, Resolved, Selection};
use zoo_results::exit::Exit;

use crate::claim_tables::{self, ClaimsOf};
use crate::cli::ShowArgs;
use crate::context::Context;
use crate::error::Result;
use crate::evidence::{self, Versions, ladder_of, reached};
use crate::output::{self, Format, Table};
use crate::standing::{self, ClaimStanding};
use crate::wording::{by_statement, claim_text};
use crate::{records, tasks};

pub fn run(context: &Context, args: &ShowArgs) -> Result<Exit> {
    let document = Document::load(&args.recipe)?;
    let resolved = document.resolve(&Selection {
        arm: args.arm.clone(),
        tier: args.overlay.tier.clone(),
        overrides: args.overlay.overrides.clone(),
    })?;
    if args.toml {
        output::write(&resolved.toml)?;
        return Ok(Exit::Ok);
    }
    let shown = Shown::gather(context, &document, resolved)?;
    match context.format {
        Format::Json => output::write_document("show", &shown.json()?)?,
        Format::Csv => output::write(&shown.claims().render(Format::Csv))?,
        Format::Human => output::write_painted(&escaped(&shown.text(context.format)?))?,
        Format::Md => output::write(&escaped(&shown.text(context.format)?))?,
    }
    Ok(Exit::Ok)
}

/// A recipe with all information that is shown.
struct Shown<'d> {
    document: &'d Document,
    resolved: Resolved,
    ladder: Vec<evidence::Step>,
    corpus: Option<CorpusDefinition>,
    /// The claims of the published size, with what the ledgers have on them.
    standings: Vec<ClaimStanding>,
    records: Table,
}

impl<'d> Shown<'d> {
    fn gather(context: &Context, document: &'d Document, resolved: Resolved) -> Result<Self> {
        let kept = records::kept(context, Some(document.name()));
        let mut versions = Versions::new(document);
        let runs = records::runs_of(kept.iter().map(|kept| &kept.entry.record));
        let ladder = ladder_of(document, &mut versions, &runs);
        let corpus = resolved.recipe.data().corpus().map(CorpusDefinition::find).transpose()?;
        let records = records::table(&kept);
        let standings = standing::claims(document, &mut versions, kept)?;
        Ok(Self { document, resolved, ladder, corpus, standings, records })
    }

    fn differences(&self) -> Result<Table> {
        let mut table = output::columns(["arm", "key", "body", "arm's"]);
        for arm in self.document.arms() {
            for difference in self.document.differences(arm)? {
                let value = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
                table.push(output::words([
                    arm.to_owned(),
                    difference.key,
                    value(difference.base),
                    value(difference.arm),
                ]));
            }
        }
        Ok(table)
    }

    /// The claims for programs.
    fn claims(&self) -> Table {
        claim_tables::for_programs([self.claims_of()]).without("recipe")
    }

    fn claims_of(&self) -> ClaimsOf<'_> {
        ClaimsOf {
            recipe: self.document.name(),
            claims: &self.resolved.recipe.claim,
            standings: &self.standings,
        }
    }

    /// The claims in one line each: number, claim, published, measured, verdict.
    fn headlines(&self) -> Table {
        claim_tables::for_people([self.claims_of()]).without("recipe")
    }

    fn data_lines(&self) -> Vec<(&'static str, String)> {
        let about = self.document.about();
        let mut lines = vec![("data", super::list::status(about.status).to_owned())];
        if let Some(corpus) = &self.corpus {
            lines.push(("corpus", format!("{}: {}", corpus.name, corpus.summary)));
            lines.push(("download", corpus.download_bytes().to_string()));
            lines.push(("on disk", corpus.disk_bytes().to_string()));
            lines.push(("licence", format!("{} ({})", corpus.licence.terms, corpus.licence.source)));
        } else if let Some(counts) = tasks::of(&self.resolved.recipe).generated() {
            lines.push(("generated", counts));
        }
        let data = self.resolved.recipe.data();
        let several = data.languages().len() > 1;
        let sets: Vec<String> = (data.eval_sets().into_iter())
            .filter_map(|name| Some((name, data.eval_set(name)?)))
            .map(|(name, eval)| {
                let of_set = match several {
                    true => format!(" in {}", eval.languages.join(", ")),
                    false => String::new(),
                };
                format!("{name} ({}, {} lines{of_set})", eval.split, eval.lines)
            })
            .collect();
        lines.push(("evaluation", sets.join(", ")));
        lines
    }

    /// What [`Self::data_lines`] says, for programs.
    fn data(&self) -> Value {
        let data = self.resolved.recipe.data();
        let sets = data.eval_sets().into_iter().filter_map(|name| Some((name, data.eval_set(name)?)));
        let sets: Vec<Value> = sets
            .map(|(name, set)| {
                json!({ "name": name, "split": set.split, "lines": set.lines, "languages": set.languages })
            })
            .collect();
        let corpus = self.corpus.as_ref().map(|corpus| {
            let (download, disk) = (corpus.download_bytes(), corpus.disk_bytes());
            json!({
                "name": corpus.name, "summary": corpus.summary,
                "download_bytes": download.known, "unknown_sizes": download.unknown, "disk_bytes": disk.known,
                "licence": { "terms": corpus.licence.terms, "source": corpus.licence.source },
            })
        });
        json!({
            "status": super::list::status(self.document.about().status),
            "corpus": corpus,
            "generated": tasks::of(&self.resolved.recipe).generated(),
            "evaluation": sets,
        })
    }

    fn parameters(&self) -> String {
        match tasks::of(&self.resolved.recipe).size() {
            Some(size) => size.parameters(),
            None => "known once the data is prepared".to_owned(),
        }
    }

    fn text(&self, format: Format) -> Result<String> {
        let about = self.document.about();
        let mut facts = vec![
            ("task", about.task.to_string()),
            ("origin", about.origin.clone()),
            ("file", self.document.file().to_owned()),
        ];
        facts.extend(self.document.base().map(|base| ("base", base.to_owned())));
        facts.push(("arms", self.document.arms().join(", ")));
        facts.push(("tiers", self.document.tiers().join(", ")));
        facts.push(("tags", about.tags.join(", ")));
        facts.push(("parameters", self.parameters()));
        facts.extend(self.data_lines());
        facts.push(("hash", self.document.hash(self.resolved.tier.as_deref(), &self.resolved.overrides)?));
        let markdown = format == Format::Md;
        let heading = |level: &str, text: &str| match markdown {
            true => format!("{level} {text}\n\n"),
            false => format!("{}\n", text.to_uppercase()),
        };
        let mut text = match markdown {
            true => format!("# {}\n\n{}\n\n", one_line(&about.name), one_line(&about.summary)),
            false => format!("{}: {}\n", one_line(&about.name), one_line(&about.summary)),
        };
        let headlines = self.headlines();
        if !headlines.rows.is_empty() && !markdown {
            text.push_str(&format!("\n{}\n", headlines.render(format)));
        }
        for (key, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
            let value = one_line(value);
            text.push_str(&match markdown {
                true => format!("- {key}: {value}\n"),
                false => format!("  {key:<11} {value}\n"),
            });
        }
        text.push('\n');

        let differs = &self.resolved.recipe.recipe.differs;
        if !differs.is_empty() {
            text.push_str(&heading("##", "differs from its source"));
            differs.iter().for_each(|line| text.push_str(&format!("- {}\n", one_line(line))));
            text.push('\n');
        }

        let mut rungs = output::columns(["rung", "holds", "because"]);
        for step in &self.ladder {
            let holds = if step.holds { "yes" } else { "no" };
            rungs.push(output::words([step.rung.name().to_owned(), holds.to_owned(), step.because.clone()]));
        }
        let evidence = reached(&self.ladder).map_or("none", |rung| rung.name());
        let claims = self.resolved.recipe.claim.iter().enumerate();
        let claims =
            by_statement(claims.map(|(at, claim)| (claim.statement(), claim_text(at + 1, claim))), "");
        let tables = [
            (format!("evidence: {evidence}"), rungs),
            ("claims".to_owned(), self.claims()),
            ("what the arms change".to_owned(), self.differences()?),
            ("records".to_owned(), self.records.clone()),
        ];
        for (title, table) in tables {
            text.push_str(&heading("##", &title));
            if title == "claims" && !markdown && !claims.is_empty() {
                text.push_str(&claims);
            } else if table.rows.is_empty() {
                text.push_str("none\n");
            } else {
                text.push_str(&table.render(format));
            }
            text.push('\n');
        }
        let which = match (&self.resolved.arm, &self.resolved.tier) {
            (None, None) => "resolved recipe".to_owned(),
            (arm, tier) => {
                let named = |what, name: &Option<String>| name.as_ref().map(|name| format!("{what} {name}"));
                let parts: Vec<String> =
                    [named("arm", arm), named("tier", tier)].into_iter().flatten().collect();
                format!("resolved recipe, {}", parts.join(", "))
            }
        };
        text.push_str(&heading("##", &which));
        let toml = without_claims(&self.resolved);
        text.push_str(&if markdown { format!("```toml\n{toml}```\n") } else { toml });
        Ok(text)
    }

    fn json(&self) -> Result<Value> {
        let mut arms = serde_json::Map::new();
        for arm in self.document.arms() {
            let changes: Vec<Value> = (self.document.differences(arm)?.into_iter())
                .map(|d| {
                    let [body, arm] = [d.base, d.arm].map(|text| text.as_deref().map(output::value_of_toml));
                    json!({ "key": d.key, "body": body, "arm": arm })
                })
                .collect();
            arms.insert(arm.to_owned(), changes.into());
        }
        let mut claims = self.claims().objects();
        for (claim, standing) in claims.as_array_mut().into_iter().flatten().zip(&self.standings) {
            claim["verdicts"] = standing.json();
        }
        let size = tasks::of(&self.resolved.recipe).size();
        Ok(json!({
            "name": self.document.name(),
            "file": self.document.file(),
            "base": self.document.base(),
            "hash": self.document.hash(self.resolved.tier.as_deref(), &self.resolved.overrides)?,
            "arm": self.resolved.arm,
            "tier": self.resolved.tier,
            "overrides": self.resolved.overrides,
            "recipe": self.resolved.recipe,
            "claims": claims,
            "arms": arms,
            "parameters": size.map(|size| json!({ "count": size.cost.parameters, "exact": size.exact })),
            "data": self.data(),
            "evidence": reached(&self.ladder).map(|rung| rung.name()),
            "ladder": self.ladder,
            "records": self.records.objects(),
        }))
    }
}

/// The resolved recipe as TOML without its claims, which are shown as a table.
fn without_claims(resolved: &Resolved) -> String {
    match resolved.toml.find("[[claim]]") {
        Some(at) => resolved.toml[..at].trim_end().to_owned() + "\n",
        None => resolved.toml.clone(),
    }
}
