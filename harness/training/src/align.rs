//! A model held against the same model in another framework, rung by rung: inputs, outputs, losses, gradients, one update.
//!
//! The file's layout and the limits are in `docs/align.md`. Comparison stops at the first rung that breaks: what is behind it
//! would break for the same reason.

use std::collections::BTreeMap;
use std::path::Path;

use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use safetensors::{Dtype, SafeTensors};
use serde::{Deserialize, Serialize};
use zoo_models::models::{Packed, PairBatch, Seq2Seq, TranslationLoss, Vocabularies, Writer};
use zoo_models::parameters::{self, ParameterValues, host_values};
use zoo_models::precision::Compute;
use zoo_models::search::{SearchIds, search};
use zoo_models::{Objective, Pass};
use zoo_recipes::{DecodeSpec, LossSpec, ModelSpec, OptimizerSpec};

use crate::flat::Flat;
use crate::optimizer::{Place, optimizer};

/// Why a file cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum AlignError {
    /// The file cannot be read.
    #[error("cannot read `{file}`: {source}")]
    Read {
        /// Which.
        file: String,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not what `docs/align.md` describes.
    #[error("`{file}`: {problem}\nhint: docs/align.md describes the layout")]
    Layout {
        /// Which.
        file: String,
        /// What is wrong.
        problem: String,
    },
}

/// The JSON in the metadata key `zoo`.
#[derive(Debug, Clone, Deserialize)]
pub struct Description {
    /// 1.
    pub layout: u32,
    /// Who wrote it.
    #[serde(default)]
    pub producer: String,
    /// As the recipe's `[model]`.
    pub model: ModelSpec,
    /// As the recipe's `[loss]`.
    pub loss: LossSpec,
    /// Size and special ids, one vocabulary for both sides.
    pub vocabulary: DescribedVocabulary,
    /// As the recipe's `[train.optimizer]`.
    #[serde(default)]
    pub optimizer: Option<OptimizerSpec>,
    /// Rate of the one update.
    #[serde(default)]
    pub learning_rate: Option<f64>,
    /// Largest global norm of the gradients.
    #[serde(default)]
    pub clip_norm: Option<f64>,
    /// Named searches.
    #[serde(default)]
    pub searches: BTreeMap<String, DecodeSpec>,
}

/// See [`Description::vocabulary`].
#[derive(Debug, Clone, Deserialize)]
pub struct DescribedVocabulary {
    /// Rows.
    pub size: usize,
    /// Padding id.
    pub pad: u32,
    /// Begin id.
    pub begin: u32,
    /// End id.
    pub end: u32,
}

/// One compared rung.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rung {
    /// `inputs`, `embeddings`, `encoder`, `logits`, `losses`, `gradients`, `update`, `search NAME`.
    pub name: String,
    /// Tensors compared; 0: the file has none.
    pub tensors: usize,
    /// Largest error, in the measure of the rung.
    pub error: f64,
    /// What it may be.
    pub limit: f64,
    /// The tensor that it was seen in.
    pub at: String,
}

impl Rung {
    /// Whether the rung holds.
    pub fn holds(&self) -> bool {
        self.error <= self.limit
    }
}

/// The rungs up to the first that broke.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Alignment {
    /// In order; all hold but possibly the last.
    pub rungs: Vec<Rung>,
}

impl Alignment {
    /// Whether every rung of the file holds.
    pub fn holds(&self) -> bool {
        self.rungs.iter().all(Rung::holds)
    }
}

/// A reference file.
#[derive(Debug)]
pub struct Reference {
    file: String,
    /// What the file says of itself.
    pub description: Description,
    tensors: BTreeMap<String, Values>,
}

#[derive(Debug, Clone)]
struct Values {
    shape: Vec<usize>,
    values: Vec<f64>,
}

impl Reference {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, AlignError> {
        let file = path.display().to_string();
        let bytes = std::fs::read(path).map_err(|source| AlignError::Read { file: file.clone(), source })?;
        Self::parse(&file, &bytes)
    }

    /// Reads a file's bytes; `file` is what messages call it.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<Self, AlignError> {
        let file = file.to_owned();
        let layout = |problem: String| AlignError::Layout { file: file.clone(), problem };
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|e| layout(e.to_string()))?;
        let description = metadata.metadata().as_ref().and_then(|m| m.get("zoo"));
        let description = description.ok_or_else(|| layout("the metadata has no key `zoo`".into()))?;
        let description: Description =
            serde_json::from_str(description).map_err(|e| layout(format!("metadata key `zoo`: {e}")))?;
        if description.layout != 1 {
            return Err(layout(format!("layout {} is not known; this version reads 1", description.layout)));
        }
        let tensors = SafeTensors::deserialize(bytes).map_err(|e| layout(e.to_string()))?;
        let mut found = BTreeMap::new();
        for (name, view) in tensors.iter() {
            let data = view.data();
            let values: Vec<f64> = match view.dtype() {
                Dtype::F32 => data.as_chunks().0.iter().map(|b| f64::from(f32::from_le_bytes(*b))).collect(),
                Dtype::F64 => data.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect(),
                Dtype::I32 => data.as_chunks().0.iter().map(|b| f64::from(i32::from_le_bytes(*b))).collect(),
                Dtype::I64 => data.as_chunks().0.iter().map(|b| i64::from_le_bytes(*b) as f64).collect(),
                other => {
                    return Err(layout(format!(
                        "tensor `{name}` is {other:?}; F32, F64, I32 and I64 are read"
                    )));
                }
            };
            found.insert(name.to_string(), Values { shape: view.shape().to_vec(), values });
        }
        Ok(Self { file, description, tensors: found })
    }

    fn layout(&self, problem: String) -> AlignError {
        AlignError::Layout { file: self.file.clone(), problem }
    }

    fn tensor(&self, name: &str) -> Result<&Values, AlignError> {
        self.tensors.get(name).ok_or_else(|| self.layout(format!("tensor `{name}` is missing")))
    }

    fn below<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a Values)> {
        self.tensors.iter().filter_map(move |(name, values)| Some((name.strip_prefix(prefix)?, values)))
    }

    /// Ids of one side without padding.
    fn sequences(&self, side: &str) -> Result<Packed, AlignError> {
        let name = format!("inputs/{side}");
        let (ids, lengths) = (self.tensor(&name)?, self.tensor(&format!("{name}_lengths"))?);
        let &[rows, columns] = ids.shape.as_slice() else {
            return Err(self.layout(format!("`{name}` must be [batch, length]")));
        };
        if lengths.values.len() != rows || lengths.values.iter().any(|&n| n < 1.0 || n > columns as f64) {
            return Err(self.layout(format!("`{name}_lengths` must be {rows} numbers from 1 to {columns}")));
        }
        let size = self.description.vocabulary.size as f64;
        if let Some(id) = ids.values.iter().find(|&&id| id < 0.0 || id >= size) {
            return Err(self.layout(format!("`{name}` has id {id}, outside of the vocabulary of {size}")));
        }
        let sequences = ids.values.chunks(columns.max(1)).zip(&lengths.values);
        let sequences =
            sequences.map(|(row, &n)| row[..n as usize].iter().map(|&id| id as u32).collect::<Vec<_>>());
        Ok(Packed::new(&sequences.collect::<Vec<_>>()))
    }

    /// Compares the model that the file describes, on a device, in FP32.
    pub fn align(&self, device: &Device) -> Result<Alignment, AlignError> {
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
        if self.tensors.contains_key("inputs/target") && !self.align_training(&model, &mut alignment)? {
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

    /// The rungs of a training step; false if one broke.
    fn align_training(&self, model: &Seq2Seq, alignment: &mut Alignment) -> Result<bool, AlignError> {
        let description = &self.description;
        let batch = self.batch()?;
        let mut pass = Pass::evaluation(Compute::FP32);

        let embeddings = [
            ("outputs/source_embedding", model.embed_source(&batch.source, &mut pass), &batch.source),
            ("outputs/target_embedding", model.embed_target(&batch.target, &mut pass), &batch.target),
        ];
        let mut rung = Measure::new("embeddings", 1e-6);
        for (name, ours, packed) in embeddings {
            self.compare_rows(&mut rung, name, ours, packed)?;
        }
        if !alignment.add(rung) {
            return Ok(false);
        }
        let mut rung = Measure::new("encoder", 5e-6);
        self.compare_rows(
            &mut rung,
            "outputs/encoder",
            model.encode(&batch.source, &mut pass),
            &batch.source,
        )?;
        if !alignment.add(rung) {
            return Ok(false);
        }
        let mut rung = Measure::new("logits", 5e-6);
        self.compare_rows(&mut rung, "outputs/logits", model.logits(&batch, &mut pass), &batch.target)?;
        if !alignment.add(rung) {
            return Ok(false);
        }

        let objective = TranslationLoss::new(&description.loss);
        let counts = objective.counts(&batch);
        let terms = objective.terms(model, &batch, &mut pass);
        let mut rung = Measure::new("losses", 2e-6);
        for (term, (_, count)) in terms.iter().zip(&counts) {
            // The file calls the minimised sum by what it is.
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

        let loss = terms.into_iter().next().expect("a loss has a term").sum / counts[0].1;
        let gradients = parameters::take_gradients(model, &mut loss.backward());
        let shapes = parameters::shapes(model);
        let gradients: BTreeMap<String, Vec<f64>> = shapes
            .iter()
            .zip(gradients)
            .map(|((path, shape), gradient)| {
                let zeros = || vec![0.0; shape.iter().product()];
                let values = gradient.map(|g| host_values(g).into_iter().map(f64::from).collect());
                (path.clone(), values.unwrap_or_else(zeros))
            })
            .collect();
        let norm = gradients.values().flatten().map(|g| g * g).sum::<f64>().sqrt();
        let mut rung = Measure::new("gradients", 1e-5);
        let largest = self.below("gradients/").map(|(_, v)| v.largest()).fold(0.0, f64::max);
        for (path, expected) in self.below("gradients/") {
            let ours =
                gradients.get(path).ok_or_else(|| self.layout(format!("there is no parameter `{path}`")))?;
            rung.add(path, expected, ours, largest);
        }
        rung.relative_to_itself("norms/gradient", self.tensors.get("norms/gradient"), &[norm]);
        if !alignment.add(rung) {
            return Ok(false);
        }
        if let (Some(spec), Some(lr)) = (&description.optimizer, description.learning_rate) {
            let rung = self.compare_update(model, &shapes, &gradients, norm, spec, lr)?;
            if !alignment.add(rung) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn batch(&self) -> Result<PairBatch, AlignError> {
        let (source, target) = (self.sequences("source")?, self.sequences("target")?);
        if source.lengths.len() != target.lengths.len() {
            return Err(self.layout("`inputs/source` and `inputs/target` have unlike batch sizes".into()));
        }
        let target_positions = self.tensor("inputs/target")?.values.len() as u64;
        Ok(PairBatch { source, target, language: 0, target_positions })
    }

    /// Our packed rows against the file's padded [batch, length, width]; padding is not compared.
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
        // Adam's first step is lr * g / (|g| + eps): with a tiny eps, rounding noise becomes a whole step of either sign. So does
        // NovoGrad's of a tensor that is noise throughout, such as the key biases' gradient.
        let tiny = match spec {
            OptimizerSpec::Adam { epsilon, .. }
            | OptimizerSpec::LazyAdam { epsilon, .. }
            | OptimizerSpec::Novograd { epsilon, .. } => *epsilon < 1e-4,
            OptimizerSpec::Sgd { .. } => false,
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
            let step = flat(gradient.iter().map(|&g| g as f32).collect());
            let place = Place { path, shape, embedding: path.ends_with("embedding.weight") };
            let new =
                rule.step(place, lr, flat(value.values.clone()), step, clip as f32).into_tensor(&device);
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
        spec: &DecodeSpec,
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

impl Values {
    fn largest(&self) -> f64 {
        self.values.iter().fold(0.0, |a, x| a.max(x.abs()))
    }

    fn parameter(&self, path: &str) -> ParameterValues {
        let values = self.values.iter().map(|&x| x as f32).collect();
        ParameterValues { path: path.to_string(), shape: self.shape.clone(), values }
    }
}

/// The worst error of a rung so far.
struct Measure(Rung);

impl Measure {
    fn new(name: &str, limit: f64) -> Self {
        Self(Rung { name: name.to_string(), tensors: 0, error: 0.0, limit, at: String::new() })
    }

    /// Largest difference, divided by `unit`.
    fn add(&mut self, name: &str, expected: &Values, ours: &[f64], unit: f64) {
        self.0.tensors += 1;
        if expected.values.len() != ours.len() {
            return self.fail(format!("{name}: {} values, not {}", ours.len(), expected.values.len()));
        }
        for (a, b) in ours.iter().zip(&expected.values) {
            let error = (a - b).abs() / if unit > 0.0 { unit } else { 1.0 };
            if error.is_nan() || error > self.0.error {
                self.0.error = if error.is_nan() { f64::INFINITY } else { error };
                self.0.at = name.to_string();
            }
        }
    }

    fn relative_to_itself(&mut self, name: &str, expected: Option<&Values>, ours: &[f64]) {
        if let Some(expected) = expected {
            self.add(name, expected, ours, expected.largest());
        }
    }

    fn fail(&mut self, at: String) {
        self.0.error = f64::INFINITY;
        self.0.at = at;
    }
}

impl Alignment {
    /// Adds a rung; false if it does not hold.
    fn add(&mut self, measure: Measure) -> bool {
        let holds = measure.0.holds();
        self.rungs.push(measure.0);
        holds
    }
}
