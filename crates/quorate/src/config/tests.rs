use std::io::Write;

use super::*;

const GOOD: &str = "process.roles=controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n\
    controller.quorum.bootstrap.servers=localhost:9093\nlisteners=CONTROLLER://127.0.0.1:9093\n\
    log.dirs=/var/lib/quorate\n";

fn load(text: &str) -> Result<Config, String> {
    load_bytes(text.as_bytes())
}

fn load_bytes(bytes: &[u8]) -> Result<Config, String> {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(bytes).expect("written");
    let name = file.path().display().to_string();
    Config::load(file.path()).map_err(|failure| {
        assert!(failure.message.lines().count() <= 3, "{}", failure.message);
        failure.message.replace(&name, "FILE")
    })
}

/// The good configuration with some lines after it, or instead of those with the same key.
fn with(lines: &str) -> Result<Config, String> {
    load(&format!("{GOOD}{lines}\n"))
}

fn without(key: &str) -> Result<Config, String> {
    let kept: Vec<&str> = GOOD.lines().filter(|line| !line.starts_with(key)).collect();
    load(&kept.join("\n"))
}

#[test]
fn defaults_are_kafkas_except_the_linger() {
    let config = with("").expect("good");
    assert!(config.controller && !config.broker && config.warnings.is_empty());
    assert_eq!(config.metadata_dir, PathBuf::from("/var/lib/quorate"));
    let core = config.core(DirectoryId::from_bytes([7; 16]).expect("an id"), 1);
    let mut expected = quorate_core::config::Config::new(
        NodeId(1),
        DirectoryId::from_bytes([7; 16]).expect("an id"),
        ListenerName::new("controller"),
    );
    expected.bootstrap_servers = vec![Endpoint::new("localhost", 9093)];
    expected.endpoints.insert(ListenerName::new("CONTROLLER"), Endpoint::new("127.0.0.1", 9093));
    expected.seed = 1;
    assert_eq!(core, expected);
    assert_eq!(config.storage.segment_bytes, 1 << 30);
    assert_eq!(config.network.request_max_bytes, 104_857_600);
    assert_eq!(config.network.max_idle, Some(Duration::from_secs(600)));
}

#[test]
fn values_that_are_set_arrive() {
    let config = with(
        "controller.quorum.append.linger.ms=25\ncontroller.quorum.fetch.timeout.ms= 3000 \n\
         metadata.log.dir=/fast\nlog.dirs=/b,/a\nmetadata.log.segment.bytes=8388608\n\
         connections.max.idle.ms=-1\nnode.id=2\nnode.id=3\nmax.connections=10",
    )
    .expect("good");
    assert_eq!(config.quorum.linger, Duration::from_millis(25));
    assert_eq!(config.quorum.fetch_timeout, Duration::from_secs(3));
    assert_eq!(config.metadata_dir, PathBuf::from("/fast"));
    assert_eq!(config.directories, ["/a", "/b", "/fast"].map(PathBuf::from));
    assert_eq!(config.storage.segment_bytes, 8_388_608);
    assert_eq!(config.network.max_idle, None);
    assert_eq!(config.network.max_connections, 10);
    assert_eq!(config.node, NodeId(3), "the last of duplicate keys counts");
    let never = with("quorate.campaign=never").expect("good");
    assert!(never.warnings.is_empty());
    assert!(!never.core(DirectoryId::from_bytes([7; 16]).expect("an id"), 1).campaigns);
    let internal = with("internal.metadata.log.segment.bytes=4096").expect("good");
    assert_eq!(internal.storage.segment_bytes, 4096);
}

#[test]
fn bad_values_name_key_value_and_next_step() {
    let table = [
        (
            "controller.quorum.fetch.timeout.ms=abc",
            "FILE: controller.quorum.fetch.timeout.ms=abc is not a whole number that fits\n  give a whole number from 0 to 2147483647, or remove the line for the default of 2000",
        ),
        (
            "controller.quorum.fetch.timeout.ms=2s",
            "controller.quorum.fetch.timeout.ms=2s is not a whole number",
        ),
        (
            "controller.quorum.fetch.timeout.ms=-1",
            "controller.quorum.fetch.timeout.ms=-1 is not a whole number",
        ),
        ("controller.quorum.fetch.timeout.ms=2147483648", "is out of range"),
        ("controller.quorum.fetch.max.bytes=0", "is out of range"),
        ("metadata.log.segment.bytes=100", "give a whole number from 8388608"),
        ("quorate.campaign=no", "quorate.campaign=no is neither always nor never\n  give never"),
        ("controller.quorum.auto.join.enable=yes", "is neither true nor false"),
        ("num.io.threads=0", "num.io.threads=0 is out of range"),
        ("node.id=-1", "node.id=-1 is out of range"),
        ("broker.id=2", "broker.id=2 differs from node.id=1"),
        ("process.roles=controler", "has the unknown role controler"),
        (
            "listeners=CONTROLLER://:9093,PLAINTEXT://:9092",
            "has the listener PLAINTEXT, which controller.listener.names lacks",
        ),
        (
            "controller.listener.names=CONTROLLER,OTHER",
            "OTHER of controller.listener.names is not in listeners",
        ),
        (
            "listeners=CONTROLLER:9093",
            "has the entry CONTROLLER:9093, which is no NAME://HOST:PORT",
        ),
        ("listeners=CONTROLLER://127.0.0.1:x", "which is no NAME://HOST:PORT"),
        ("listeners=CONTROLLER://h:1,CONTROLLER://h:2", "has the listener CONTROLLER twice"),
        ("controller.listener.names=A,B\nlisteners=A://h:1,B://h:1", "has port 1 for both A and B"),
        (
            "advertised.listeners=CONTROLLER://0.0.0.0:9093",
            "advertises 0.0.0.0, where no other machine can connect to",
        ),
        ("advertised.listeners=CONTROLLER://[::]:9093", "advertises ::, where"),
        ("listeners=CONTROLLER://0.0.0.0:9093", "add advertised.listeners=CONTROLLER://HOST:9093"),
        ("inter.broker.listener.name=controller", "is in controller.listener.names too"),
        ("listener.security.protocol.map=CONTROLLER:FOO", "has the unknown security protocol FOO"),
        (
            "listener.security.protocol.map=OTHER:PLAINTEXT",
            "no security protocol is defined for the listener CONTROLLER",
        ),
        (
            "controller.quorum.voters=1@127.0.0.1",
            "has the entry 1@127.0.0.1, which is no ID@HOST:PORT",
        ),
        ("controller.quorum.voters=2@h:9093", "does not contain node.id=1"),
        ("controller.quorum.voters=1@0.0.0.0:9093", "has the host 0.0.0.0, which is not routable"),
        ("controller.quorum.voters=1@a:1,1@b:1", "names node 1 twice"),
        ("controller.quorum.bootstrap.servers=foo", "has the entry foo, which is no HOST:PORT"),
        ("log.dirs=,", "log.dirs=, names no directory"),
    ];
    for (lines, expected) in table {
        let message = with(lines).expect_err(lines);
        assert!(message.starts_with("FILE: "), "{message}");
        assert!(message.contains(expected), "{lines}:\n{message}\nlacks {expected}");
        assert!(message.contains("\n  "), "{message} says no next step");
    }
}

#[test]
fn first_bytes_are_no_byte_order_mark() {
    for bytes in [&b"\xff"[..], b"\xfe", b"\xef\xbb", b"\xff\xfen"] {
        let message = load_bytes(bytes).expect_err("no configuration");
        assert!(message.contains("process.roles is missing"), "{message}");
    }
    // Its first key is another one, as for Java.
    let marked = load(&format!("\u{feff}{GOOD}")).expect_err("a key of another name");
    assert!(marked.contains("process.roles is missing"), "{marked}");
}

#[test]
fn missing_keys_are_named() {
    for key in ["process.roles", "node.id", "controller.listener.names", "listeners"] {
        let message = without(key).expect_err(key);
        assert!(message.contains(key), "{message}");
    }
    let message = without("controller.quorum").expect_err("no voters");
    assert!(message.contains("neither controller.quorum.bootstrap.servers nor"), "{message}");
    let config = without("log.dirs").expect("Kafka's default");
    assert_eq!(config.metadata_dir, PathBuf::from("/tmp/kafka-logs"));
}

#[test]
fn unknown_keys_are_named_once_and_known_ones_not_at_all() {
    let config = with(
        "controller.quorum.fetch.timeout=5\ncompany.team=x\nnum.partitions=3\nssl.keystore.location=/x\n\
         listener.name.controller.ssl.client.auth=none\ntransaction.max.timeout.ms=1",
    )
    .expect("good");
    let [warning] = config.warnings.as_slice() else { panic!("{:?}", config.warnings) };
    assert!(
        warning.ends_with(
            ": unknown keys are ignored: company.team, \
             controller.quorum.fetch.timeout (did you mean controller.quorum.fetch.timeout.ms?)"
        ),
        "{warning}"
    );
}

#[test]
fn what_cannot_run_is_refused_only_by_run() {
    let broker = "process.roles=broker,controller\nlisteners=CONTROLLER://h:1,PLAINTEXT://h:2";
    for (lines, expected) in [
        (broker, "Quorate is a controller alone"),
        ("listener.security.protocol.map=CONTROLLER:SASL_SSL", "CONTROLLER the protocol SASL_SSL"),
        ("controller.listener.names=SSL\nlisteners=SSL://h:1", "SSL the protocol SSL"),
    ] {
        let config = with(lines).expect("can be formatted");
        let failure = config.check_can_run().expect_err(lines);
        assert!(failure.message.contains(expected), "{}", failure.message);
    }
    with("").expect("good").check_can_run().expect("can run");
}

#[test]
fn the_advertised_endpoint_follows_kafkas_rules() {
    let name = ListenerName::new("CONTROLLER");
    let endpoint = |lines: &str| {
        let config = with(lines).expect(lines);
        config.listeners.endpoints().get(&name).expect("an endpoint").to_string()
    };
    assert_eq!(endpoint("advertised.listeners=controller://c1.example:19093"), "c1.example:19093");
    assert_eq!(endpoint(""), "127.0.0.1:9093");
    assert_eq!(endpoint("listeners=CONTROLLER://[::1]:9093"), "[::1]:9093");
    let voters = "controller.quorum.voters=1@c1.example:9999,2@c2.example:9999\n";
    assert_eq!(endpoint(&format!("{voters}listeners=CONTROLLER://:9093")), "c1.example:9999");
    assert_eq!(
        endpoint(&format!("{voters}listeners=CONTROLLER://0.0.0.0:9093")),
        "c1.example:9999"
    );
    assert_eq!(endpoint(voters), "127.0.0.1:9093");
    assert!(endpoint("listeners=CONTROLLER://:9093").ends_with(":9093"));
}
