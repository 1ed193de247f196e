//! A model of the physical limit of pull replication, to measure beside in the same run.
//!
//! One leader and two followers as threads of one process: raw TCP on loopback, parked fetches, a log file each and
//! fdatasync on all three, the leader's write in parallel with its followers', group commit, and N closed-loop clients
//! that cost nothing. No protocol, no checks.
//!
//! ```text
//! floor DIR                                  three rounds of 1, 16, 64, 256, 1024 in flight, each with and without sync
//! floor DIR CLIENTS RECORD-BYTES SECONDS SYNC     one row; SYNC is fdatasync or nosync
//! ```
//!
//! It prints `mode,clients,rec,ops,ops_s,p50us,p90us,p99us,p999us,recs_per_batch`; the last one is records for each
//! fdatasync of the leader.

use std::{
    fs::OpenOptions,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex},
    time::{Duration, Instant},
};
struct S {
    leo: u64,
    durable: u64,
    m: [u64; 2],
    commit: u64,
    buf: Vec<u8>,
    base: u64,
    inflight: Vec<(u64, u64, Instant)>,
    permits: u64,
    lat: Vec<(u64, u64)>,
    stop: bool,
}
fn adv(s: &mut S) -> bool {
    let mut v = [s.durable, s.m[0], s.m[1]];
    v.sort_unstable();
    let c = v[1];
    if c > s.commit {
        s.commit = c;
        let now = Instant::now();
        let mut i = 0;
        while i < s.inflight.len() {
            if s.inflight[i].0 <= c {
                let (_, k, t) = s.inflight.remove(i);
                s.permits += k;
                s.lat.push(((now - t).as_nanos() as u64, k));
            } else {
                i += 1;
            }
        }
        true
    } else {
        false
    }
}
fn run(n: u64, rec: usize, secs: u64, sync: bool, dir: &str) {
    let sh = Arc::new((
        Mutex::new(S {
            leo: 0,
            durable: 0,
            m: [0; 2],
            commit: 0,
            buf: vec![],
            base: 0,
            inflight: vec![],
            permits: n,
            lat: vec![],
            stop: false,
        }),
        Condvar::new(),
        Condvar::new(),
    ));
    let l = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = l.local_addr().unwrap();
    let mut hs = vec![];
    for f in 0..2 {
        let p = format!("{dir}/f{f}");
        hs.push(std::thread::spawn(move || {
            // follower
            let mut s = TcpStream::connect(addr).unwrap();
            s.set_nodelay(true).unwrap();
            let mut file =
                OpenOptions::new().create(true).write(true).truncate(true).open(p).unwrap();
            let mut off = 0u64;
            loop {
                if s.write_all(&off.to_le_bytes()).is_err() {
                    break;
                }
                let mut h = [0u8; 4];
                if s.read_exact(&mut h).is_err() {
                    break;
                }
                let len = u32::from_le_bytes(h) as usize;
                if len == 0 {
                    break;
                }
                let mut b = vec![0u8; len];
                s.read_exact(&mut b).unwrap();
                file.write_all(&b).unwrap();
                if sync {
                    file.sync_data().unwrap();
                }
                off += len as u64;
            }
        }));
    }
    for f in 0..2 {
        let (mut s, _) = l.accept().unwrap();
        s.set_nodelay(true).unwrap();
        let sh = sh.clone();
        hs.push(std::thread::spawn(move || {
            let (m, data, perm) = &*sh; // leader side of one follower
            loop {
                let mut o = [0u8; 8];
                if s.read_exact(&mut o).is_err() {
                    break;
                }
                let off = u64::from_le_bytes(o);
                let out;
                {
                    let mut g = m.lock().unwrap();
                    g.m[f] = off;
                    if adv(&mut g) {
                        perm.notify_one();
                    }
                    while g.leo <= off && !g.stop {
                        g = data.wait(g).unwrap();
                    }
                    if g.leo <= off {
                        let _ = s.write_all(&0u32.to_le_bytes());
                        break;
                    }
                    let st = (off - g.base) as usize;
                    let mut v = Vec::with_capacity(4 + g.buf.len() - st);
                    v.extend_from_slice(&((g.buf.len() - st) as u32).to_le_bytes());
                    v.extend_from_slice(&g.buf[st..]);
                    out = v;
                }
                s.write_all(&out).unwrap();
            }
        }));
    }
    let (m, data, perm) = &*sh;
    let mut file = OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(true)
        .open(format!("{dir}/l"))
        .unwrap();
    let t0 = Instant::now();
    let mut batches = 0u64;
    loop {
        let chunk;
        let end;
        {
            let mut g = m.lock().unwrap();
            while g.permits == 0 {
                g = perm.wait_timeout(g, Duration::from_millis(50)).unwrap().0;
                if t0.elapsed().as_secs() >= secs {
                    break;
                }
            }
            if t0.elapsed().as_secs() >= secs {
                g.stop = true;
                data.notify_all();
                break;
            }
            let k = g.permits;
            g.permits = 0;
            chunk = vec![7u8; k as usize * rec];
            g.leo += chunk.len() as u64;
            end = g.leo;
            g.inflight.push((end, k, Instant::now()));
            let mn = g.m[0].min(g.m[1]);
            if g.buf.len() > 4 << 20 {
                let cut = (mn - g.base) as usize;
                g.buf.drain(..cut);
                g.base = mn;
            }
            g.buf.extend_from_slice(&chunk);
            batches += 1;
            data.notify_all();
        }
        file.write_all(&chunk).unwrap();
        if sync {
            file.sync_data().unwrap();
        }
        let mut g = m.lock().unwrap();
        g.durable = end;
        adv(&mut g);
    }
    for h in hs {
        let _ = h.join();
    }
    let el = t0.elapsed().as_secs_f64();
    let g = m.lock().unwrap();
    let mut v = g.lat.clone();
    v.sort_unstable();
    let tot: u64 = v.iter().map(|x| x.1).sum();
    let q = |p: f64| {
        let mut a = 0;
        for x in &v {
            a += x.1;
            if a as f64 >= tot as f64 * p {
                return x.0 as f64 / 1e3;
            }
        }
        0.0
    };
    println!(
        "{},{n},{rec},{tot},{:.0},{:.0},{:.0},{:.0},{:.0},{:.1}",
        if sync { "fdatasync" } else { "nosync" },
        tot as f64 / el,
        q(0.5),
        q(0.9),
        q(0.99),
        q(0.999),
        tot as f64 / batches as f64
    );
}

const HEADER: &str = "mode,clients,rec,ops,ops_s,p50us,p90us,p99us,p999us,recs_per_batch";

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        [] => rounds("./floor-data"),
        [dir] => rounds(dir),
        [dir, clients, rec, secs, mode @ ("fdatasync" | "nosync")] => {
            let number = |text: &str| match text.parse::<u64>() {
                Ok(number) if number > 0 => number,
                _ => wrong(&format!("{text} is not a number above 0")),
            };
            let rec = number(rec) as usize;
            std::fs::create_dir_all(dir).unwrap();
            println!("{HEADER}");
            run(number(clients), rec, number(secs), mode == "fdatasync", dir);
        }
        _ => wrong("give DIR, or DIR CLIENTS RECORD-BYTES SECONDS fdatasync|nosync"),
    }
}

fn rounds(dir: &str) {
    std::fs::create_dir_all(dir).unwrap();
    println!("{HEADER}");
    for _ in 0..3 {
        for n in [1u64, 16, 64, 256, 1024] {
            for sy in [true, false] {
                run(n, 256, 3, sy, dir);
            }
        }
    }
}

fn wrong(message: &str) -> ! {
    eprintln!("floor: {message}");
    std::process::exit(2)
}
