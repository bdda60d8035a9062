//! The pictures of a recipe in memory.

use std::collections::BTreeMap;
use std::path::Path;

use rayon::prelude::*;
use zoo_recipes::DataBlock;
use zoo_recipes::tasks::image_classification::{PictureDataSpec, PictureReaderSpec, PictureSizeSpec};

use super::error::PictureDataError;
use super::source::fitted;
use super::split::PictureSplit;
use super::stripes::stripes;
use crate::corpora::FetchedCorpus;
use crate::image::{IdxPictures, ListedPicture, Picture, PictureFolder, read_idx_labels, read_idx_pictures};
use crate::set_size::SetSizeError;

/// Bytes that the pictures of one split may take in memory.
pub const MOST_BYTES: u64 = 8 << 30;

/// The splits of a recipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedPictures {
    /// Splits by name.
    pub splits: BTreeMap<String, PictureSplit>,
    /// Names of the classes.
    pub classes: Vec<String>,
}

impl PreparedPictures {
    /// The split of an evaluation set.
    ///
    /// # Errors
    /// The set or its split is missing, or it has another number of pictures than the recipe says.
    pub fn eval_set(&self, name: &str, data: &PictureDataSpec) -> Result<&PictureSplit, PictureDataError> {
        let set = data.eval.get(name).ok_or_else(|| self.unknown(name))?;
        let split = self.splits.get(&set.split).ok_or_else(|| self.unknown(name))?;
        SetSizeError::check((name, &set.split), "pictures", split.len(), set.lines)?;
        Ok(split)
    }

    /// The training split.
    ///
    /// # Errors
    /// It was not prepared.
    pub fn train(&self, data: &PictureDataSpec) -> Result<&PictureSplit, PictureDataError> {
        self.splits.get(data.training()).ok_or_else(|| self.unknown(data.training()))
    }

    fn unknown(&self, split: &str) -> PictureDataError {
        let known: Vec<&str> = self.splits.keys().map(String::as_str).collect();
        PictureDataError::UnknownSplit { split: split.to_owned(), known: known.join(", ") }
    }
}

/// Pictures as they were read, with their classes.
struct Read {
    pictures: Vec<Picture>,
    labels: Vec<u32>,
    names: Vec<String>,
    classes: Vec<String>,
}

/// Reads the pictures of some splits. `base` is the folder that the recipe's paths are relative to.
/// Folders are numbered as the training folder numbers them.
///
/// # Errors
/// The pictures cannot be read, or they are not what the recipe says.
pub fn prepare_pictures(
    data: &PictureDataSpec,
    corpus: Option<&FetchedCorpus>,
    base: &Path,
    splits: &[&str],
) -> Result<PreparedPictures, PictureDataError> {
    let mut found = BTreeMap::new();
    let mut classes: Option<Vec<String>> = match &data.reader {
        PictureReaderSpec::ImageFolder { folders } => {
            let training = folders.get(data.training()).map(|folder| PictureFolder::list(&base.join(folder)));
            training.transpose()?.map(|folder| folder.classes().to_vec())
        }
        PictureReaderSpec::Idx { .. } | PictureReaderSpec::Stripes { .. } => None,
    };
    for &name in splits {
        let most = data.share.map_or(usize::MAX, |share| {
            (if name == data.training() { share.train } else { share.eval }) as usize
        });
        let read = read(data, corpus, base, name, most, classes.as_deref())?;
        check(data, name, &read)?;
        classes.get_or_insert_with(|| read.classes.clone());
        found.insert(name.to_owned(), kept(read, name, data.picture)?);
    }
    Ok(PreparedPictures { splits: found, classes: classes.unwrap_or_default() })
}

fn check(data: &PictureDataSpec, split: &str, read: &Read) -> Result<(), PictureDataError> {
    if read.classes.len() != data.classes as usize {
        let (found, expected) = (read.classes.len(), data.classes);
        return Err(PictureDataError::Classes { split: split.to_owned(), found, expected });
    }
    match read.labels.iter().position(|label| *label >= data.classes) {
        Some(at) => {
            let (class, last) = (read.labels[at], data.classes.saturating_sub(1));
            Err(PictureDataError::Label { split: split.to_owned(), picture: at + 1, class, last })
        }
        None => Ok(()),
    }
}

fn kept(read: Read, name: &str, size: PictureSizeSpec) -> Result<PictureSplit, PictureDataError> {
    let of_picture = u64::from(size.height) * u64::from(size.width) * u64::from(size.channels);
    let bytes = of_picture.saturating_mul(read.labels.len() as u64);
    if bytes > MOST_BYTES {
        return Err(PictureDataError::TooLarge { split: name.to_owned(), bytes, limit: MOST_BYTES });
    }
    let fitted: Result<Vec<Picture>, _> =
        read.pictures.into_par_iter().map(|picture| fitted(picture, size)).collect();
    let mut bytes = Vec::with_capacity(bytes as usize);
    fitted?.iter().for_each(|picture| bytes.extend_from_slice(picture.bytes()));
    let size = [size.height, size.width, size.channels].map(|n| n as usize);
    Ok(PictureSplit { name: name.to_owned(), bytes, labels: read.labels, names: read.names, size })
}

fn read(
    data: &PictureDataSpec,
    corpus: Option<&FetchedCorpus>,
    base: &Path,
    split: &str,
    most: usize,
    classes: Option<&[String]>,
) -> Result<Read, PictureDataError> {
    let numbered = || (0..data.classes).map(|class| class.to_string()).collect();
    let unknown = |known: Vec<&String>| {
        let known: Vec<&str> = known.into_iter().map(String::as_str).collect();
        PictureDataError::UnknownSplit { split: split.to_owned(), known: known.join(", ") }
    };
    match (&data.reader, corpus) {
        (PictureReaderSpec::Idx { .. }, Some(corpus)) => {
            let pictures = corpus.split(split)?.pictures.as_ref();
            let pictures =
                pictures.ok_or_else(|| PictureDataError::NoPictures { split: split.to_owned() })?;
            let read = pictures.read()?;
            Ok(of_idx(&read.pictures, &read.labels, pictures.classes.clone(), most))
        }
        (PictureReaderSpec::Idx { files }, None) => {
            let files = files.get(split).ok_or_else(|| unknown(files.keys().collect()))?;
            let (images, labels_file) = (base.join(&files.images), base.join(&files.labels));
            let (pictures, labels) = (read_idx_pictures(&images)?, read_idx_labels(&labels_file)?);
            if pictures.len() != labels.len() {
                let (pictures, labels) = (pictures.len(), labels.len());
                return Err(PictureDataError::Unequal { images, pictures, labels_file, labels });
            }
            Ok(of_idx(&pictures, &labels, numbered(), most))
        }
        (PictureReaderSpec::ImageFolder { folders }, _) => {
            let folder = folders.get(split).ok_or_else(|| unknown(folders.keys().collect()))?;
            of_folder(&PictureFolder::list(&base.join(folder))?, split, most, classes)
        }
        (PictureReaderSpec::Stripes { train, test, seed }, _) => {
            let (first, count) = match split {
                "train" => (0, *train),
                "test" => (*train, *test),
                _ => {
                    let known = "train, test".to_owned();
                    return Err(PictureDataError::UnknownSplit { split: split.to_owned(), known });
                }
            };
            let made = stripes(data.picture, data.classes, *seed, first..first.saturating_add(count))?;
            let (pictures, labels) = made.into_iter().unzip();
            Ok(Read { pictures, labels, names: Vec::new(), classes: numbered() })
        }
    }
}

fn of_idx(pictures: &IdxPictures, labels: &[u8], classes: Vec<String>, most: usize) -> Read {
    let pictures = (0..pictures.len().min(most)).filter_map(|index| pictures.picture(index)).collect();
    let labels = labels.iter().take(most).map(|label| u32::from(*label)).collect();
    Read { pictures, labels, names: Vec::new(), classes }
}

fn of_folder(
    folder: &PictureFolder,
    split: &str,
    most: usize,
    classes: Option<&[String]>,
) -> Result<Read, PictureDataError> {
    let classes = classes.unwrap_or(folder.classes());
    let number = |class: &String| {
        let number = classes.iter().position(|known| known == class);
        number
            .map(|number| number as u32)
            .ok_or_else(|| PictureDataError::UnknownClass { split: split.to_owned(), class: class.clone() })
    };
    let numbers: Vec<u32> = folder.classes().iter().map(number).collect::<Result<_, _>>()?;
    let taken = first_of_each_class(folder, most);
    let listed: Vec<_> = taken.iter().map(|index| &folder.pictures()[*index]).collect();
    let pictures: Result<Vec<Picture>, _> =
        taken.par_iter().filter_map(|index| folder.read(*index)).collect();
    Ok(Read {
        pictures: pictures?,
        labels: listed.iter().map(|picture| numbers[picture.class as usize]).collect(),
        names: listed
            .iter()
            .map(|picture| format!("{}/{}", folder.classes()[picture.class as usize], picture.name))
            .collect(),
        classes: classes.to_vec(),
    })
}

/// Indices of `most` pictures at most: the first of each class, then the second, and so on, so that
/// a share has pictures of every class.
fn first_of_each_class(folder: &PictureFolder, most: usize) -> Vec<usize> {
    let mut places = vec![0usize; folder.classes().len()];
    let place = |(index, picture): (usize, &ListedPicture)| {
        let place = &mut places[picture.class as usize];
        *place += 1;
        (*place, index)
    };
    let mut order: Vec<(usize, usize)> = folder.pictures().iter().enumerate().map(place).collect();
    order.sort_unstable();
    let mut taken: Vec<usize> = order.into_iter().take(most).map(|(_, index)| index).collect();
    taken.sort_unstable();
    taken
}
