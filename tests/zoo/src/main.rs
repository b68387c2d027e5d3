//! `loadline-zoo MODE [key=value ...]`: one hostile program; see the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(loadline_zoo::run(std::env::args().skip(1)))
}
