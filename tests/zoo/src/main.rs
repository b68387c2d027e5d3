//! `loadline-zoo MODE [key=value ...]`: one hostile program; see the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    let words = std::env::args_os().skip(1);
    let words = words.map(|word| word.to_string_lossy().into_owned());
    ExitCode::from(loadline_zoo::run(words))
}
