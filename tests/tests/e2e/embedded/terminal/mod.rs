//! The commands of the terminal whose output is text: `everturn chat` in a pipe, `everturn tail` and `everturn show`.

mod pipes;
mod reading;
