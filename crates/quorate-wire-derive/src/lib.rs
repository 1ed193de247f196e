//! The derive behind quorate-wire.
