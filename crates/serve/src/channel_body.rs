//! The body of an answer that a thread writes piece by piece. The thread waits while the client is
//! slow, and learns from a failing send that the client has left.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use http_body::Frame;
use tokio::sync::mpsc::{self, Receiver, Sender};

/// Pieces that wait for a slow client.
const WAITING: usize = 8;

struct ChannelBody {
    pieces: Receiver<Bytes>,
}

/// A body, and the end at which it is written. The body ends when the sender is dropped.
pub fn channel() -> (Sender<Bytes>, Body) {
    let (sender, pieces) = mpsc::channel(WAITING);
    (sender, Body::new(ChannelBody { pieces }))
}

impl http_body::Body for ChannelBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.pieces.poll_recv(context);
        piece.map(|piece| piece.map(|bytes| Ok(Frame::data(bytes))))
    }
}
