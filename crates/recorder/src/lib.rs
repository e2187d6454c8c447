//! (contract: see below)
