//! Tests the sandbox over real sockets with a client that is written only for these tests.

mod client;
mod data;
mod faults;
mod loads;
mod shapes;
mod strict;
mod token;
