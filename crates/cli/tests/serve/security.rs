//! Requests that must not pass, and contents that must not run.

use backstory_testkit::http::{HttpAnswer, request};

use super::server::{ServedPlace, Server, encoded};

/// A place with one run, and its server.
fn served() -> (ServedPlace, Server) {
    let place = ServedPlace::new();
    place.write("a", "text\n");
    place.record(&["cp", "a", "b"]);
    let server = place.serve(&[]);
    (place, server)
}

fn get(server: &Server, target: &str, headers: &[(&str, &str)]) -> HttpAnswer {
    request(server.port, "GET", target, headers).unwrap()
}

#[test]
fn a_request_without_the_token_or_with_another_one_is_refused() {
    let (_place, server) = served();
    let other = "0".repeat(64);
    let bearer = format!("Bearer {other}");
    let wrong = format!("/api/v1/runs?token={other}");
    for answer in [
        get(&server, "/api/v1/runs", &[]),
        get(&server, "/api/v1/runs?token=", &[]),
        get(&server, &wrong, &[]),
        get(&server, "/api/v1/runs", &[("Authorization", &bearer)]),
        get(
            &server,
            "/api/v1/runs",
            &[("Cookie", &format!("backstory-{}={other}", server.port))],
        ),
    ] {
        assert_eq!(answer.status, 401);
        assert_eq!(answer.json()["error"]["code"], "unauthorized");
    }
    let page = get(&server, "/", &[]);
    assert_eq!(page.status, 401);
    assert!(
        page.text()
            .contains("the address that `backstory serve` printed")
    );
    assert!(page.header("content-type").starts_with("text/html"));
}

#[test]
fn the_token_in_the_address_sets_a_strict_cookie_that_admits_the_page() {
    let (_place, server) = served();
    let first = get(&server, &format!("/?token={}", server.token), &[]);
    let cookie = first.header("set-cookie");
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"),
        "{cookie}"
    );
    assert_eq!(first.header("referrer-policy"), "no-referrer");
    let pair = cookie.split(';').next().unwrap();
    assert_eq!(
        get(&server, "/api/v1/runs", &[("Cookie", pair)]).status,
        200
    );
    let among = format!("x=y; {pair}; z=1");
    assert_eq!(
        get(&server, "/api/v1/runs", &[("Cookie", &among)]).status,
        200
    );
}

#[test]
fn a_request_under_another_host_name_is_refused_although_it_has_the_token() {
    let (_place, server) = served();
    let bearer = server.bearer();
    let hosts = [
        "evil.example".to_owned(),
        format!("evil.example:{}", server.port),
        "127.0.0.1".to_owned(),
        format!("127.0.0.1:{}", server.port ^ 1),
        format!("127.0.0.1.evil.example:{}", server.port),
        String::new(),
    ];
    for host in &hosts {
        let headers = [("Host", host.as_str()), ("Authorization", bearer.as_str())];
        assert_eq!(
            get(&server, "/api/v1/runs", &headers).status,
            403,
            "{host:?}"
        );
    }
    let local = format!("localhost:{}", server.port);
    let headers = [("Host", local.as_str()), ("Authorization", bearer.as_str())];
    assert_eq!(get(&server, "/api/v1/runs", &headers).status, 200);
}

#[test]
fn a_request_from_another_site_is_refused_and_a_followed_link_is_not() {
    let (_place, server) = served();
    let bearer = server.bearer();
    let ask = |target: &str, more: &[(&str, &str)]| {
        let mut headers = vec![("Authorization", bearer.as_str())];
        headers.extend(more);
        get(&server, target, &headers).status
    };
    let own = format!("http://127.0.0.1:{}", server.port);
    let neighbour = format!("http://127.0.0.1:{}", server.port ^ 1);
    assert_eq!(ask("/api/v1/runs", &[("Origin", &own)]), 200);
    for origin in ["http://evil.example", "null", "", &neighbour] {
        assert_eq!(
            ask("/api/v1/runs", &[("Origin", origin)]),
            403,
            "{origin:?}"
        );
    }
    for site in ["cross-site", "same-site"] {
        assert_eq!(
            ask("/api/v1/runs", &[("Sec-Fetch-Site", site)]),
            403,
            "{site}"
        );
        let follows = [
            ("Sec-Fetch-Site", site),
            ("Sec-Fetch-Mode", "navigate"),
            ("Sec-Fetch-Dest", "document"),
        ];
        assert_eq!(ask("/", &follows), 200, "{site}");
        assert_eq!(ask("/api/v1/runs", &follows), 403, "{site}");
    }
}

#[test]
fn every_answer_forbids_foreign_scripts_sniffing_and_frames() {
    let (_place, server) = served();
    let bearer = server.bearer();
    for target in [
        "/",
        "/file?path=/x",
        "/api/v1/runs",
        "/api/v1/nothing",
        "/assets/none.js",
    ] {
        let answer = get(&server, target, &[("Authorization", &bearer)]);
        let policy = answer.header("content-security-policy");
        let scripts = policy
            .split(';')
            .find(|part| part.contains("script-src"))
            .unwrap();
        assert_eq!(scripts.trim(), "script-src 'self'", "{target}");
        assert!(policy.contains("frame-ancestors 'none'"), "{target}");
        assert!(policy.contains("default-src 'none'"), "{target}");
        assert_eq!(
            answer.header("x-content-type-options"),
            "nosniff",
            "{target}"
        );
    }
}

#[test]
fn a_recorded_page_or_drawing_is_never_served_so_that_its_scripts_run() {
    let place = ServedPlace::new();
    place.write("a.html", "<script>alert(1)</script>");
    place.write(
        "a.svg",
        "<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>",
    );
    place.record(&["sh", "-c", "cat a.html > b.html; cat a.svg > b.svg"]);
    let server = place.serve(&[]);
    for (name, media, how) in [
        ("b.html", "application/octet-stream", "attachment"),
        ("b.svg", "image/svg+xml", "inline"),
    ] {
        let version = server.version(&place.path(name));
        let answer = server.ask("GET", &format!("/versions/{version}/content"), &[]);
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.header("content-type"), media);
        assert!(answer.header("content-disposition").starts_with(how));
        let policy = answer.header("content-security-policy");
        assert!(
            policy.contains("sandbox") && !policy.contains("allow-scripts"),
            "{policy}"
        );
        assert!(policy.contains("default-src 'none'") && !policy.contains("script-src"));
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
    }
}

#[test]
fn nothing_is_run_unless_the_command_line_allows_it_and_the_page_asks_itself() {
    let (place, server) = served();
    let route = format!("/rerun?path={}", encoded(place.path("b")));
    assert_eq!(
        server.ask("POST", &route, &[("X-Backstory", "1")]).status,
        403
    );
    assert_eq!(server.ask("GET", &route, &[]).status, 405);
    let allowed = place.serve(&["--allow-rerun"]);
    assert_eq!(allowed.ask("POST", &route, &[]).status, 403);
}

#[test]
fn the_server_listens_on_the_loopback_interface_only() {
    let (_place, server) = served();
    let port = format!(":{:04X} ", server.port);
    let listening = |table: &str| -> Vec<String> {
        let text = std::fs::read_to_string(table).unwrap_or_default();
        let local = text
            .lines()
            .filter_map(|line| line.split_whitespace().nth(1));
        let local = local.map(|address| format!("{address} "));
        local.filter(|address| address.ends_with(&port)).collect()
    };
    let addresses = listening("/proc/net/tcp");
    assert!(!addresses.is_empty());
    assert!(
        addresses
            .iter()
            .all(|address| address.starts_with("0100007F:")),
        "{addresses:?}"
    );
    assert!(listening("/proc/net/tcp6").is_empty());
}
