//! A replica on real sockets and disks, and the library's API.
