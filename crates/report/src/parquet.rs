//! The trials as an Apache Parquet file, one row each: for data frames.
//!
//! The columns of the CSV with types: texts are strings, counts and bytes are 64-bit integers,
//! everything else is a double. What was not measured is null.

use std::sync::Arc;

use ::parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use ::parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::schema::types::Type;

use crate::columns::{COLUMNS, ColumnValue, trial_rows};
use crate::view::ResultView;

/// The bytes of the file.
/// Errors: A count does not fit 63 bits or a text is larger than 2 GiB, in a damaged result.
pub fn render_parquet(view: &ResultView) -> Result<Vec<u8>, ParquetError> {
    let fields = COLUMNS.iter().map(|(name, value)| column_type(name, value));
    let fields = fields.collect::<Result<_, _>>()?;
    let schema = Type::group_type_builder("trials").with_fields(fields);
    let schema = schema.build()?;
    let mut file = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Default::default())?;
    let rows = trial_rows(view);
    let mut group = file.next_row_group()?;
    for (_, value) in &COLUMNS {
        let rows = rows.iter();
        match physical_type(value) {
            PhysicalType::BYTE_ARRAY => {
                let text = |row| Some(ByteArray::from(value.read_text(row)?.as_str()));
                write_column::<ByteArrayType>(&mut group, rows.map(text))?;
            }
            PhysicalType::INT64 => {
                let count = |row| i64::try_from(value.read_count(row)?).ok();
                write_column::<Int64Type>(&mut group, rows.map(count))?;
            }
            _ => write_column::<DoubleType>(&mut group, rows.map(|row| value.read_number(row)))?,
        }
    }
    group.close()?;
    file.into_inner()
}

fn physical_type(value: &ColumnValue) -> PhysicalType {
    match value {
        ColumnValue::Text(_) => PhysicalType::BYTE_ARRAY,
        ColumnValue::Count(_) | ColumnValue::Size(_) => PhysicalType::INT64,
        ColumnValue::Number(_) | ColumnValue::Seconds(_) | ColumnValue::Failing(_) => {
            PhysicalType::DOUBLE
        }
    }
}

fn column_type(name: &str, value: &ColumnValue) -> Result<Arc<Type>, ParquetError> {
    let physical = physical_type(value);
    let is_text = physical == PhysicalType::BYTE_ARRAY;
    let column = Type::primitive_type_builder(name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(is_text.then_some(LogicalType::String));
    Ok(Arc::new(column.build()?))
}

/// A null has the definition level 0, a value 1.
fn write_column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    cells: impl Iterator<Item = Option<T::T>>,
) -> Result<(), ParquetError> {
    let cells: Vec<_> = cells.collect();
    let levels: Vec<i16> = cells.iter().map(|cell| cell.is_some().into()).collect();
    let values: Vec<_> = cells.into_iter().flatten().collect();
    if let Some(mut column) = group.next_column()? {
        let typed = column.typed::<T>();
        typed.write_batch(&values, Some(&levels), None)?;
        column.close()?;
    }
    Ok(())
}
