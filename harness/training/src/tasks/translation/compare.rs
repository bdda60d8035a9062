//! Builds the model that a reference describes, computes it, and compares the results.

use std::collections::BTreeMap;

use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use zoo_models::Packed;
use zoo_models::parameters::{self, ParameterValues, host_values};
use zoo_models::precision::Compute;
use zoo_models::search::{SearchIds, search};
use zoo_models::tasks::translation::{Seq2Seq, TranslationLoss, Vocabularies, Writer};
use zoo_models::{Objective, Pass};
use zoo_recipes::OptimizerSpec;
use zoo_recipes::TokenSearchSpec;

use super::reference::Reference;
use crate::align::{AlignError, Alignment, Limits, Measure, Values};
use crate::flat::Flat;
use crate::optimizer::{Gradient, Place, optimizer};

impl Reference {
    /// Compares the model that the file describes, on a device, with products in the given type.
    /// With half-precision products the comparison ends at the gradients.
    pub fn align(&self, device: &Device, compute: Compute) -> Result<Alignment, AlignError> {
        let limits = Limits::of(compute);
        let description = &self.description;
        let vocabulary = &description.vocabulary;
        let vocabularies = Vocabularies {
            source: vocabulary.size,
            target: vocabulary.size,
            languages: 1,
            pad: vocabulary.pad,
            begin: vocabulary.begin,
            end: vocabulary.end,
        };
        let weights: Vec<ParameterValues> =
            self.below("weights/").map(|(path, v)| v.parameter(path)).collect();
        let model = Seq2Seq::new(&description.model, &vocabularies, 0, &device.clone().autodiff());
        let model = parameters::import(model, weights).map_err(|e| self.layout(e.to_string()))?;
        let mut alignment = Alignment { rungs: Vec::new() };
        let source = self.sequences("source")?;
        if self.tensors.contains_key("inputs/target")
            && !self.align_training(&model, compute, &limits, &mut alignment)?
        {
            return Ok(alignment);
        }
        if !limits.to_the_end {
            return Ok(alignment);
        }
        let values = parameters::export(&model);
        let model = Seq2Seq::new(&description.model, &vocabularies, 0, device);
        let model = parameters::import(model, values).map_err(|e| self.layout(e.to_string()))?;
        for (name, spec) in &description.searches {
            let rung = self.compare_search(&model, &source, name, spec)?;
            if !alignment.add(rung) {
                break;
            }
        }
        Ok(alignment)
    }

    /// Compares the rungs of a training step. Returns whether all are within their limits.
    fn align_training(
        &self,
        model: &Seq2Seq,
        compute: Compute,
        limits: &Limits,
        alignment: &mut Alignment,
    ) -> Result<bool, AlignError> {
        let description = &self.description;
        let batch = self.batch()?;
        let mut pass = Pass::evaluation(compute);

        let embeddings = [
            ("outputs/source_embedding", model.embed_source(&batch.source, &mut pass), &batch.source),
            ("outputs/target_embedding", model.embed_target(&batch.target, &mut pass), &batch.target),
        ];
        let mut rung = Measure::new("embeddings", limits.embeddings);
        for (name, ours, packed) in embeddings {
            self.compare_rows(&mut rung, name, ours, packed)?;
        }
        if !alignment.add(rung) {
            return Ok(false);
        }
        let mut rung = Measure::new("encoder", limits.outputs);
        let memory = model.encode(&batch.source, &mut pass);
        self.compare_rows(&mut rung, "outputs/encoder", memory.keys, &batch.source)?;
        self.compare_rows(&mut rung, "outputs/encoder_values", memory.values, &batch.source)?;
        if !alignment.add(rung) {
            return Ok(false);
        }
        let mut rung = Measure::new("logits", limits.outputs);
        self.compare_rows(&mut rung, "outputs/logits", model.logits(&batch, &mut pass), &batch.target)?;
        if !alignment.add(rung) {
            return Ok(false);
        }

        let objective = TranslationLoss::new(&description.loss);
        let counts = objective.counts(&batch);
        let terms = objective.terms(model, &batch, &mut pass);
        let mut rung = Measure::new("losses", limits.losses);
        for (term, (_, count)) in terms.iter().zip(&counts) {
            // The file names the minimised sum by its kind.
            let name = if term.name == "loss" { "cross_entropy" } else { term.name };
            let ours = f64::from(host_values(term.sum.clone().inner())[0]);
            rung.relative_to_itself(
                &format!("losses/{name}"),
                self.tensors.get(&format!("losses/{name}")),
                &[ours],
            );
            rung.relative_to_itself(
                &format!("counts/{name}"),
                self.tensors.get(&format!("counts/{name}")),
                &[*count],
            );
        }
        if !alignment.add(rung) {
            return Ok(false);
        }

        let loss = terms.into_iter().next().expect("a loss has a term").sum / counts[0].1 * limits.scale;
        let gradients = parameters::take_gradients(model, &mut loss.backward());
        let unscaled = |gradient: f32| f64::from(gradient / limits.scale);
        let shapes = parameters::shapes(model);
        let gradients: BTreeMap<String, Vec<f64>> = shapes
            .iter()
            .zip(gradients)
            .map(|((path, shape), gradient)| {
                let zeros = || vec![0.0; shape.iter().product()];
                let values = gradient.map(|g| host_values(g).into_iter().map(unscaled).collect());
                (path.clone(), values.unwrap_or_else(zeros))
            })
            .collect();
        let norm = gradients.values().flatten().map(|g| g * g).sum::<f64>().sqrt();
        let mut rung = Measure::new("gradients", limits.gradients);
        let mut most = Measure::new("most gradients", limits.most_gradients);
        let largest = self.below("gradients/").map(|(_, v)| v.largest()).fold(0.0, f64::max);
        for (path, expected) in self.below("gradients/") {
            let ours =
                gradients.get(path).ok_or_else(|| self.layout(format!("there is no parameter `{path}`")))?;
            rung.add(path, expected, ours, largest);
            most.add_share(path, expected, ours, largest, 0.9);
        }
        rung.relative_to_itself("norms/gradient", self.tensors.get("norms/gradient"), &[norm]);
        if !alignment.add(rung) {
            return Ok(false);
        }
        if !limits.to_the_end {
            return Ok(alignment.add(most));
        }
        if let (Some(spec), Some(lr)) = (&description.optimizer, description.learning_rate) {
            let rung = self.compare_update(model, &shapes, &gradients, norm, spec, lr)?;
            if !alignment.add(rung) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Compares our packed rows with the file's padded `[batch, length, width]`, without the
    /// padding.
    fn compare_rows(
        &self,
        rung: &mut Measure,
        name: &str,
        ours: Tensor<2>,
        packed: &Packed,
    ) -> Result<(), AlignError> {
        let Some(expected) = self.tensors.get(name) else { return Ok(()) };
        let [_, width] = ours.dims();
        let (rows, longest) = (packed.lengths.len(), expected.shape.get(1).copied().unwrap_or(0));
        if expected.shape != [rows, longest, width] || packed.lengths.iter().any(|&n| n as usize > longest) {
            return Err(
                self.layout(format!("`{name}` is {:?}, not [{rows}, length, {width}]", expected.shape))
            );
        }
        let kept = packed.lengths.iter().enumerate().flat_map(|(i, &length)| {
            expected.values[i * longest * width..][..length as usize * width].iter().copied()
        });
        let kept = Values { shape: Vec::new(), values: kept.collect() };
        let ours: Vec<f64> = host_values(ours.inner()).into_iter().map(f64::from).collect();
        rung.relative_to_itself(name, Some(&kept), &ours);
        Ok(())
    }

    fn compare_update(
        &self,
        model: &Seq2Seq,
        shapes: &[(String, Vec<usize>)],
        gradients: &BTreeMap<String, Vec<f64>>,
        norm: f64,
        spec: &OptimizerSpec,
        lr: f64,
    ) -> Result<Measure, AlignError> {
        let clip = self.description.clip_norm.map_or(1.0, |clip| (clip / norm).min(1.0));
        let largest_gradient = gradients.values().flatten().fold(0f64, |a, g| a.max(g.abs()));
        // Adam's first step is lr * g / (|g| + eps): with a tiny eps, rounding noise becomes a
        // whole step of either sign. NovoGrad has the same problem for a tensor that is noise
        // throughout, such as the gradient of the key biases.
        let tiny = match spec {
            OptimizerSpec::Adam { epsilon, .. }
            | OptimizerSpec::LazyAdam { epsilon, .. }
            | OptimizerSpec::Adamw { epsilon, .. }
            | OptimizerSpec::Novograd { epsilon, .. }
            | OptimizerSpec::Rmsprop { epsilon, .. }
            | OptimizerSpec::Adadelta { epsilon, .. } => *epsilon < 1e-4,
            OptimizerSpec::Sgd { .. } | OptimizerSpec::Adagrad { .. } => false,
        };
        let floor = if tiny { 1e-4 * largest_gradient } else { 0.0 };
        let device = model.devices().into_iter().next().map(Device::inner).unwrap_or_else(Device::flex);
        let flat = |values: Vec<f32>| {
            let n = values.len();
            Flat::from_tensor(Tensor::<1>::from_data(TensorData::new(values, [n]), &device))
        };
        let mut rule = optimizer(spec);
        rule.begin();
        let mut rung = Measure::new("update", 1.0);
        for (value, (path, shape)) in parameters::export(model).into_iter().zip(shapes) {
            let gradient = &gradients[path];
            let step = Gradient::new(flat(gradient.iter().map(|&g| g as f32).collect()), clip as f32);
            let place = Place { path, shape, embedding: path.ends_with("embedding.weight") };
            let new = rule.step(place, lr, flat(value.values.clone()), step).into_tensor(&device);
            let Some(expected) = self.tensors.get(&format!("updated/{path}")) else { continue };
            let allowed = 1e-3 * lr + 2e-7 * value.values.iter().fold(0f64, |a, w| a.max(f64::from(w.abs())));
            let kept = |values: Vec<f64>| {
                values
                    .into_iter()
                    .zip(gradient)
                    .filter(|(_, g)| g.abs() >= floor)
                    .map(|(v, _)| v)
                    .collect::<Vec<_>>()
            };
            let ours = kept(host_values(new).into_iter().map(f64::from).collect());
            let expected = Values { shape: Vec::new(), values: kept(expected.values.clone()) };
            rung.add(path, &expected, &ours, allowed);
        }
        Ok(rung)
    }

    fn compare_search(
        &self,
        model: &Seq2Seq,
        sources: &Packed,
        name: &str,
        spec: &TokenSearchSpec,
    ) -> Result<Measure, AlignError> {
        let tokens = self.tensor(&format!("searches/{name}/tokens"))?;
        let lengths = self.tensor(&format!("searches/{name}/lengths"))?;
        let scores = self.tensor(&format!("searches/{name}/scores"))?;
        let &[_, hypotheses, longest] = tokens.shape.as_slice() else {
            return Err(self.layout(format!("`searches/{name}/tokens` must be [batch, hypotheses, length]")));
        };
        let ids = SearchIds { pad: self.description.vocabulary.pad, end: self.description.vocabulary.end };
        let found = search(&Writer::new(model, 0, Pass::evaluation(Compute::FP32)), sources, spec, ids);
        let mut rung = Measure::new(&format!("search {name}"), 5e-5);
        for (i, found) in found.iter().enumerate() {
            let known = (0..hypotheses).filter(|h| lengths.values[i * hypotheses + h] > 0.0).count();
            if found.len() != known {
                rung.fail(format!("sentence {i}: {} hypotheses, not {known}", found.len()));
                continue;
            }
            for (h, hypothesis) in found.iter().enumerate() {
                let at = i * hypotheses + h;
                let row = &tokens.values[at * longest..][..lengths.values[at] as usize];
                let mut expected: Vec<u32> = row.iter().map(|&id| id as u32).collect();
                if expected.last() == Some(&ids.end) {
                    expected.pop();
                }
                let place = format!("sentence {i}, hypothesis {h}");
                if hypothesis.tokens != expected {
                    rung.fail(format!("{place}: other tokens"));
                }
                let score = Values { shape: Vec::new(), values: vec![scores.values[at]] };
                rung.add(&place, &score, &[hypothesis.score], 1.0);
            }
        }
        Ok(rung)
    }
}
