//! The messages of the supervisor to the keeper, one byte each, about listeners of filters.

/// Message to the keeper: a listener comes with it.
pub(crate) const LISTENER: u8 = b'L';
/// Message to the keeper: the buffers of the next listener come with it.
pub(crate) const BUFFERS: u8 = b'B';
/// Message to the keeper: respond from now on, by every listener.
pub(crate) const SERVE: u8 = b'S';
/// Message to the keeper: respond from now on, by the last listener.
pub(crate) const SERVE_LAST: u8 = b'O';
