//! From a TCP connection to the stream that frames travel on: the one place where TLS will be added.

use std::io;

use tokio::net::TcpStream;

/// What frames are read from and written to.
pub(crate) type Stream = TcpStream;

/// Makes a stream of a connection, whichever side opened it. Frames are small and wait for answers,
/// so they are never held back to fill a packet.
pub(crate) fn plaintext(tcp: TcpStream) -> io::Result<Stream> {
    tcp.set_nodelay(true)?;
    Ok(tcp)
}
