mod flags;
mod plan;
mod prepare;
mod study;

fn main() {}
