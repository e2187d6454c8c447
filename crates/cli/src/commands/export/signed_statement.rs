//! An attestation that is signed as a Sigstore bundle (`export in-toto --sigstore-key`).

use std::io;
use std::path::Path;

use backstory_evidence::bundle;
use backstory_export::{Error, Family, Format, Target, View};

/// A format of in-toto statements whose result is signed.
pub struct SignedStatement<'a> {
    /// The format.
    pub format: &'a dyn Format,
    /// The private key.
    pub key: &'a Path,
    /// The address of the authority that gives a time stamp.
    pub tsa: Option<&'a str>,
}

impl Format for SignedStatement<'_> {
    fn name(&self) -> &'static str {
        self.format.name()
    }
    fn about(&self) -> &'static str {
        self.format.about()
    }
    fn family(&self) -> Family {
        self.format.family()
    }
    fn proven_by(&self) -> &'static str {
        self.format.proven_by()
    }

    fn write(&self, view: &View, target: Target<'_>) -> Result<(), Error> {
        let mut statement = Vec::new();
        self.format.write(view, Target::Stream(&mut statement))?;
        let bundle = bundle::sign(&statement, self.key, self.tsa).map_err(io::Error::other)?;
        serde_json::to_writer(&mut *target.stream(), &bundle).map_err(io::Error::from)?;
        Ok(())
    }
}
