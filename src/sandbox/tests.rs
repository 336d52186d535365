//! The sandbox against a client written for these tests alone, over real sockets.

mod client;
mod data;
mod faults;
mod loads;
mod shapes;
mod strict;
mod token;
