//! Prints what each hostile input of `tests/hostile.rs` costs: `cargo run -p automation --release --example hostile_table`.

#![expect(clippy::print_stdout, reason = "the figures are this program's output")]

#[path = "../tests/hostile.rs"]
mod hostile;

fn main() -> std::process::ExitCode {
    let (table, is_bounded) = hostile::table(&hostile::costs());
    print!("{table}");
    if is_bounded { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE }
}
