//! Tables as Parquet: one row group, no compression, every column optional.

use std::path::Path;
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;
use serde_json::Value;
use zoo_results::exit::Exit;

use crate::error::Failure;
use crate::output::{Cell, Table};

/// The type of a column: that of all its values that are not null.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Flag,
    Whole,
    Number,
    Text,
}

impl Kind {
    fn of<'c>(cells: impl Iterator<Item = &'c Cell> + Clone) -> Self {
        let all = |is: fn(&Value) -> bool| {
            cells.clone().all(|Cell { value, .. }| value.is_null() || is(value))
                && cells.clone().any(|cell| !cell.value.is_null())
        };
        if all(Value::is_boolean) {
            Self::Flag
        } else if all(Value::is_i64) {
            Self::Whole
        } else if all(Value::is_number) {
            Self::Number
        } else {
            Self::Text
        }
    }

    fn physical(self) -> Physical {
        match self {
            Self::Flag => Physical::BOOLEAN,
            Self::Whole => Physical::INT64,
            Self::Number => Physical::DOUBLE,
            Self::Text => Physical::BYTE_ARRAY,
        }
    }
}

/// The table as the bytes of a Parquet file. Columns have the keys for programs. Lists and objects
/// are texts, as in CSV.
pub fn encode(table: &Table) -> Result<Vec<u8>> {
    let cells = |at: usize| table.rows.iter().filter_map(move |row| row.get(at));
    let kinds: Vec<Kind> = (0..table.columns.len()).map(|at| Kind::of(cells(at))).collect();
    let field = |(column, kind): (&crate::output::Column, &Kind)| {
        let text = (*kind == Kind::Text).then_some(LogicalType::String);
        let field = Type::primitive_type_builder(&column.key, kind.physical())
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(text);
        field.build().map(Arc::new)
    };
    let fields = table.columns.iter().zip(&kinds).map(field).collect::<Result<Vec<_>>>()?;
    let schema = Type::group_type_builder("table").with_fields(fields).build()?;
    let mut bytes = Vec::new();
    let properties = Arc::new(WriterProperties::builder().build());
    let mut file = SerializedFileWriter::new(&mut bytes, Arc::new(schema), properties)?;
    let mut rows = file.next_row_group()?;
    for (at, kind) in kinds.iter().enumerate() {
        let Some(mut column) = rows.next_column()? else { break };
        match kind {
            Kind::Flag => fill::<BoolType>(&mut column, cells(at), |cell| cell.value.as_bool()),
            Kind::Whole => fill::<Int64Type>(&mut column, cells(at), |cell| cell.value.as_i64()),
            Kind::Number => fill::<DoubleType>(&mut column, cells(at), |cell| cell.value.as_f64()),
            Kind::Text => fill::<ByteArrayType>(&mut column, cells(at), |cell| match &cell.value {
                Value::Null => None,
                Value::String(text) => Some(ByteArray::from(text.as_str())),
                _ => Some(ByteArray::from(cell.text.as_str())),
            }),
        }?;
        column.close()?;
    }
    rows.close()?;
    file.close()?;
    Ok(bytes)
}

fn fill<'c, T: DataType>(
    column: &mut SerializedColumnWriter<'_>,
    cells: impl Iterator<Item = &'c Cell>,
    value: impl Fn(&Cell) -> Option<T::T>,
) -> Result<()> {
    let values: Vec<Option<T::T>> = cells.map(value).collect();
    let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<T::T> = values.into_iter().flatten().collect();
    column.typed::<T>().write_batch(&values, Some(&levels), None).map(drop)
}

/// The failure of writing `file`.
pub fn failure(file: &Path, error: &ParquetError) -> Failure {
    Failure::new(Exit::Internal, format!("cannot write {} as Parquet: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write as _;

    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    use super::*;
    use crate::output::columns;

    fn read(bytes: &[u8]) -> SerializedFileReader<File> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        SerializedFileReader::new(file).unwrap()
    }

    #[test]
    fn a_column_has_the_type_of_its_values_and_nulls_stay_nulls() {
        let mut table = columns(["name", "#seed", "#value", "dirty", "#nothing", "changes"]);
        let row = |name: &str, seed: u64, value: Option<f64>, dirty| {
            vec![
                Cell::words(name),
                Cell::count(seed),
                Cell::number(value),
                Cell::flag(dirty, ["yes", "no"]),
                Cell::number(None),
                Cell::list(["a=1".to_owned(), "b=2".to_owned()], "; "),
            ]
        };
        table.push(row("a \"quoted\" ä", 1, Some(1.0 / 3.0), true));
        table.push(row("", 2, None, false));
        let bytes = encode(&table).unwrap();
        assert_eq!(bytes, encode(&table).unwrap(), "equal bytes each time");
        let reader = read(&bytes);
        let rows: Vec<Vec<(String, Field)>> =
            reader.get_row_iter(None).unwrap().map(|row| row.unwrap().into_columns()).collect();
        let fields = |row: &[(String, Field)]| row.iter().map(|(_, field)| field.clone()).collect::<Vec<_>>();
        let text = |text: &str| Field::Str(text.to_owned());
        assert_eq!(
            fields(&rows[0]),
            [
                text("a \"quoted\" ä"),
                Field::Long(1),
                Field::Double(1.0 / 3.0),
                Field::Bool(true),
                Field::Null,
                text("a=1; b=2")
            ]
        );
        assert_eq!(
            fields(&rows[1]),
            [Field::Null, Field::Long(2), Field::Null, Field::Bool(false), Field::Null, text("a=1; b=2")]
        );
        let names: Vec<&str> = rows[0].iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["name", "seed", "value", "dirty", "nothing", "changes"]);
    }

    #[test]
    fn a_table_without_rows_has_its_columns() {
        let reader = read(&encode(&columns(["name", "#value"])).unwrap());
        assert_eq!(reader.metadata().file_metadata().num_rows(), 0);
        assert_eq!(reader.metadata().file_metadata().schema().get_fields().len(), 2);
    }
}
