//! Checks the `[train]` block.

use super::Findings;
use crate::spec::{
    EvaluatedWeights, OptimizerSpec, Recipe, RegularizerSpec, ScheduleSpec, TakenSpec, TransferSpec,
    Velocity, WarmupStart, begins_with,
};

pub(super) fn validate(recipe: &Recipe, findings: &mut Findings<'_, '_>) {
    let train = &recipe.train;
    if train.max_updates.is_none() && train.max_epochs.is_none() {
        findings.report_with("train", "training has no end", "max_updates or max_epochs, or both");
    }
    for (limit, path) in [(train.max_updates, "train.max_updates"), (train.max_epochs, "train.max_epochs")] {
        if let Some(limit) = limit {
            findings.positive(limit, path);
        }
    }
    findings.positive(u64::from(train.batches_per_update), "train.batches_per_update");
    findings.positive(train.log_every, "train.log_every");
    findings.positive(train.checkpoint.every_updates, "train.checkpoint.every_updates");
    if let Some(norm) = train.clip_norm {
        findings.above_zero(norm, "train.clip_norm");
    }

    groups(recipe, findings);
    if let Some(larc) = &train.larc {
        findings.above_zero(larc.eta, "train.larc.eta");
        findings.not_negative(larc.min_update, "train.larc.min_update");
        findings.above_zero(larc.epsilon, "train.larc.epsilon");
        findings.require(train.clip_norm.is_none(), "train.larc", || {
            "`train.clip_norm` and `train.larc` both say how large a gradient may be".to_owned()
        });
    }

    let has_valid = recipe.data().has_eval_set("valid");
    let needs_valid = |path: &str, what: &str, findings: &mut Findings<'_, '_>| {
        if !has_valid {
            let message =
                format!("{what} looks at the evaluation set `valid`, which the recipe does not have");
            findings.report_with(path, message, "[data.eval.valid]");
        }
    };
    if let Some(patience) = &train.patience {
        findings.positive(u64::from(patience.epochs), "train.patience.epochs");
        needs_valid("train.patience", "patience", findings);
    }
    match &train.checkpoint.evaluate {
        EvaluatedWeights::Last => {}
        EvaluatedWeights::Best { decode, from_epoch } => {
            needs_valid("train.checkpoint.evaluate", "the best checkpoint", findings);
            best_of(recipe, decode.as_deref(), *from_epoch, findings);
        }
        EvaluatedWeights::MeanOfEpochs { epochs } => {
            findings.positive(u64::from(*epochs), "train.checkpoint.evaluate.epochs");
        }
        EvaluatedWeights::MeanOfLast { checkpoints, every_updates } => {
            findings.positive(u64::from(*checkpoints), "train.checkpoint.evaluate.checkpoints");
            findings.positive(*every_updates, "train.checkpoint.evaluate.every_updates");
            if let Some(last) = train.max_updates {
                findings.require(*every_updates <= last, "train.checkpoint.evaluate.every_updates", || {
                    format!("no checkpoint is written: {every_updates} updates is more than the run's {last}")
                });
            }
        }
    }

    if let Some(ema) = train.checkpoint.ema {
        findings.share(ema, "train.checkpoint.ema");
        let mean = matches!(
            train.checkpoint.evaluate,
            EvaluatedWeights::MeanOfEpochs { .. } | EvaluatedWeights::MeanOfLast { .. }
        );
        findings.require(!mean, "train.checkpoint.ema", || {
            "`train.checkpoint.evaluate` and `train.checkpoint.ema` both make a mean of weights".to_owned()
        });
    }

    findings.require(
        train.checkpoint.ema_of.is_empty() || train.checkpoint.ema.is_some(),
        "train.checkpoint.ema_of",
        || "`ema_of` says what `train.checkpoint.ema` averages, which is not given".to_owned(),
    );

    match &train.optimizer {
        OptimizerSpec::Adam { beta1, beta2, epsilon, .. }
        | OptimizerSpec::LazyAdam { beta1, beta2, epsilon, .. } => {
            findings.share(*beta1, "train.optimizer.beta1");
            findings.share(*beta2, "train.optimizer.beta2");
            findings.above_zero(*epsilon, "train.optimizer.epsilon");
            if let OptimizerSpec::Adam { weight_decay, .. } = &train.optimizer {
                findings.not_negative(*weight_decay, "train.optimizer.weight_decay");
            }
        }
        OptimizerSpec::Adamw { beta1, beta2, epsilon, weight_decay, decayed: _ }
        | OptimizerSpec::Novograd { beta1, beta2, epsilon, weight_decay, grad_averaging: _, variant: _ } => {
            findings.share(*beta1, "train.optimizer.beta1");
            findings.share(*beta2, "train.optimizer.beta2");
            findings.above_zero(*epsilon, "train.optimizer.epsilon");
            findings.not_negative(*weight_decay, "train.optimizer.weight_decay");
        }
        OptimizerSpec::Rmsprop { rho, epsilon } | OptimizerSpec::Adadelta { rho, epsilon } => {
            findings.share(*rho, "train.optimizer.rho");
            findings.above_zero(*epsilon, "train.optimizer.epsilon");
        }
        OptimizerSpec::Adagrad { initial_accumulator } => {
            findings.above_zero(*initial_accumulator, "train.optimizer.initial_accumulator");
        }
        OptimizerSpec::Sgd { momentum, weight_decay, nesterov, velocity } => {
            findings.share(*momentum, "train.optimizer.momentum");
            findings.require(
                *momentum > 0.0 || *velocity == Velocity::Gradients,
                "train.optimizer.velocity",
                || "without momentum there is no velocity: `momentum` must be above 0".to_owned(),
            );
            findings.require(
                !nesterov || *velocity == Velocity::Gradients,
                "train.optimizer.velocity",
                || "Nesterov's momentum sums gradients: `velocity` must be \"gradients\"".to_owned(),
            );
            findings.require(!nesterov || *momentum > 0.0, "train.optimizer.nesterov", || {
                "Nesterov's momentum of 0 is none: `momentum` must be above 0".to_owned()
            });
            findings.not_negative(*weight_decay, "train.optimizer.weight_decay");
        }
    }
    if let Some(factor) = train.bias_lr {
        findings.not_negative(factor, "train.bias_lr");
        findings.require(train.larc.is_none(), "train.bias_lr", || {
            "`train.bias_lr` and `train.larc` both change the learning rate of a bias".to_owned()
        });
    }
    if let Some(RegularizerSpec::L2 { scale, .. }) = &train.regularizer {
        findings.not_negative(*scale, "train.regularizer.scale");
    }
    if let Some(transfer) = &train.transfer {
        self::transfer(transfer, recipe, findings);
    }
    schedule(recipe, findings);
}

/// Checks that weights are taken from another recipe, and that each has one place.
fn transfer(transfer: &TransferSpec, recipe: &Recipe, findings: &mut Findings<'_, '_>) {
    findings.said(&transfer.recipe, "train.transfer.recipe");
    findings.said(&transfer.arm, "train.transfer.arm");
    findings.require(transfer.recipe != recipe.recipe.name, "train.transfer.recipe", || {
        "a recipe cannot take weights from its own run".to_owned()
    });
    for (at, TakenSpec { from, to }) in transfer.parameters.iter().enumerate() {
        let path = format!("train.transfer.parameters.{at}");
        findings.said(from, &format!("{path}.from"));
        findings.said(to, &format!("{path}.to"));
        let known = transfer.parameters[..at].iter().map(|taken| &taken.to);
        let twice = known.into_iter().any(|known| begins_with(known, to) || begins_with(to, known));
        findings.require(!twice, &format!("{path}.to"), || format!("`{to}` is taken twice"));
    }
}

/// Checks the groups of parameters whose gradients are scaled or clipped separately.
fn groups(recipe: &Recipe, findings: &mut Findings<'_, '_>) {
    let train = &recipe.train;
    for (at, group) in train.groups.iter().enumerate() {
        let path = format!("train.groups.{at}");
        findings.said(&group.parameters, &format!("{path}.parameters"));
        let both = train.groups[..at]
            .iter()
            .map(|other| (&other.parameters, &group.parameters))
            .find(|(other, this)| begins_with(other, this) || begins_with(this, other));
        findings.require(both.is_none(), &format!("{path}.parameters"), || {
            format!("two groups are of `{}`", both.map_or("", |(other, this)| other.max(this)))
        });
        findings.require(group.factor.is_some() || group.clip_norm.is_some(), &path, || {
            "the group is neither scaled nor clipped: give `factor` or `clip_norm`".to_owned()
        });
        for (number, key) in [(group.factor, "factor"), (group.clip_norm, "clip_norm")] {
            if let Some(number) = number {
                findings.above_zero(number, &format!("{path}.{key}"));
            }
        }
    }
    let other = train.clip_norm.is_some() || train.larc.is_some();
    findings.require(train.groups.is_empty() || !other, "train.groups", || {
        "`train.groups` says how each group's gradient is clipped, so `train.clip_norm` and `train.larc` do not"
            .to_owned()
    });
}

/// Checks a selection of the best validation by a score, or among late epochs only.
fn best_of(recipe: &Recipe, decode: Option<&str>, from_epoch: u64, findings: &mut Findings<'_, '_>) {
    if let Some(name) = decode {
        let path = "train.checkpoint.evaluate.decode";
        findings.exists(name, recipe.searches().into_iter(), path, "search");
        let lacks = recipe.search(name).is_some_and(|search| search.lacks_language_model());
        findings.require(!lacks, path, || {
            format!("the search `{name}` needs a language model, and none is given")
        });
        let targets = recipe.data().eval_set("valid").map(|set| set.languages.len());
        findings.require(targets.is_none_or(|targets| targets < 2), path, || {
            "the evaluation set `valid` is in several languages; what is scored is in one".to_owned()
        });
    }
    if let Some(last) = recipe.train.max_epochs {
        findings.require(from_epoch <= last, "train.checkpoint.evaluate.from_epoch", || {
            format!("the run has {last} epochs, and the best is looked for from epoch {from_epoch} on")
        });
    }
    let stuck =
        recipe.train.patience.is_some() || matches!(recipe.train.schedule, ScheduleSpec::Plateau { .. });
    findings.require(!stuck || (decode.is_none() && from_epoch == 0), "train.checkpoint.evaluate", || {
        "`train.patience` and a plateau wait for a lower loss, and the best is not that of the lowest here".to_owned()
    });
}

fn schedule(recipe: &Recipe, findings: &mut Findings<'_, '_>) {
    // A learning rate of 0 is allowed: with it one can check that a verdict can fail.
    let lr = |lr: f64, findings: &mut Findings<'_, '_>| findings.not_negative(lr, "train.schedule.lr");
    let floor = |min_lr: f64, lr: f64, findings: &mut Findings<'_, '_>| {
        findings.not_negative(min_lr, "train.schedule.min_lr");
        findings.require(min_lr <= lr, "train.schedule.min_lr", || {
            format!("the least learning rate, {min_lr}, is above the first, {lr}")
        });
    };
    let length = |updates: Option<u64>, findings: &mut Findings<'_, '_>| {
        if let Some(updates) = updates {
            findings.positive(updates, "train.schedule.decay_updates");
        }
    };
    match &recipe.train.schedule {
        ScheduleSpec::Fixed { lr: first } => lr(*first, findings),
        ScheduleSpec::TransformerPolicy { lr: first, warmup_updates, width: _, max_lr, coefficient } => {
            lr(*first, findings);
            findings.positive(*warmup_updates, "train.schedule.warmup_updates");
            if let Some(cap) = max_lr {
                findings.above_zero(*cap, "train.schedule.max_lr");
            }
            findings.not_negative(*coefficient, "train.schedule.coefficient");
        }
        ScheduleSpec::InverseSqrt { lr: peak, warmup_updates, warmup_init_lr } => {
            lr(*peak, findings);
            findings.positive(*warmup_updates, "train.schedule.warmup_updates");
            findings.not_negative(*warmup_init_lr, "train.schedule.warmup_init_lr");
        }
        ScheduleSpec::ExpDecay {
            lr: first,
            decay_updates,
            decay_rate,
            min_lr,
            staircase: _,
            begin_decay_at,
            warmup_updates,
        } => {
            lr(*first, findings);
            length(*decay_updates, findings);
            findings.require(warmup_updates <= begin_decay_at, "train.schedule.warmup_updates", || {
                format!(
                    "the warm-up of {warmup_updates} updates ends behind the decay's begin, {begin_decay_at}"
                )
            });
            findings.above_zero(*decay_rate, "train.schedule.decay_rate");
            floor(*min_lr, *first, findings);
        }
        ScheduleSpec::PolyDecay {
            lr: first,
            decay_updates,
            power,
            min_lr,
            begin_decay_at: _,
            warmup_updates: _,
        } => {
            lr(*first, findings);
            length(*decay_updates, findings);
            findings.above_zero(*power, "train.schedule.power");
            floor(*min_lr, *first, findings);
        }
        ScheduleSpec::CosineDecay {
            lr: first,
            decay_updates,
            min_lr_ratio,
            begin_decay_at: _,
            warmup_updates,
            warmup_start,
        } => {
            lr(*first, findings);
            length(*decay_updates, findings);
            findings.require(
                *warmup_updates > 0 || *warmup_start == WarmupStart::Zero,
                "train.schedule.warmup_start",
                || "there is no warm-up to start: `warmup_updates` must be above 0".to_owned(),
            );
            findings.require((0.0..=1.0).contains(min_lr_ratio), "train.schedule.min_lr_ratio", || {
                format!("`min_lr_ratio` is {min_lr_ratio}; it is a share of `lr`, 0 to 1")
            });
        }
        ScheduleSpec::InvPolyDecay { lr: first, decay_updates, min_lr, power } => {
            lr(*first, findings);
            length(*decay_updates, findings);
            findings.above_zero(*min_lr, "train.schedule.min_lr");
            floor(*min_lr, *first, findings);
            findings.above_zero(*power, "train.schedule.power");
        }
        ScheduleSpec::WarmupSteps { lr: peak, warmup_updates: _, hold, steps, decay_rate } => {
            lr(*peak, findings);
            findings.require((0.0..=1.0).contains(hold), "train.schedule.hold", || {
                format!("`hold` is {hold}; it is a share of the run, 0 to 1")
            });
            findings.positive(*steps, "train.schedule.steps");
            findings.above_zero(*decay_rate, "train.schedule.decay_rate");
        }
        ScheduleSpec::Plateau { lr: first, factor, patience: _, keeps_falling: _, min_lr } => {
            lr(*first, findings);
            findings.require(*factor > 0.0 && *factor < 1.0, "train.schedule.factor", || {
                format!("`factor` is {factor}; the rate falls by one between 0 and 1")
            });
            floor(*min_lr, *first, findings);
            findings.require(recipe.data().has_eval_set("valid"), "train.schedule.kind", || {
                "the rate falls by what `data.eval.valid` says, and there is no such set".to_owned()
            });
        }
        ScheduleSpec::Inv { lr: first, gamma, power } => {
            lr(*first, findings);
            findings.not_negative(*gamma, "train.schedule.gamma");
            findings.above_zero(*power, "train.schedule.power");
        }
        ScheduleSpec::PiecewiseConstant { lr: first, boundaries, factors } => {
            lr(*first, findings);
            findings.require(boundaries.len() == factors.len(), "train.schedule.factors", || {
                format!("{} boundaries, but {} factors", boundaries.len(), factors.len())
            });
            findings.require(
                boundaries.is_sorted_by(|one, next| one < next),
                "train.schedule.boundaries",
                || "the boundaries do not rise".to_owned(),
            );
            for (at, factor) in factors.iter().enumerate() {
                findings.not_negative(*factor, &format!("train.schedule.factors.{at}"));
            }
        }
    }
}
