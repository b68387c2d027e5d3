//! A Chromium with one page, spoken to over `--remote-debugging-pipe`; the tests of several crates
//! include this file.
//!
//! The protocol is the Chrome DevTools Protocol: JSON messages, each ended by a zero byte, on
//! descriptors 3 (to the browser) and 4 (from it). A shell moves them there.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use base64::Engine as _;
use serde_json::{Value, json};

/// Flags for a browser that talks to nobody.
const FLAGS: &str = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
    --disable-background-networking --disable-component-update --disable-sync --hide-scrollbars \
    --disable-dev-shm-usage --remote-debugging-pipe";

/// A browser that is still there after this many seconds hangs; it is killed, and the test fails.
const LONGEST: u32 = 300;

/// Keeps its promise when the page has loaded and drawn what it draws then.
const LOADED: &str = "new Promise(done => document.readyState === 'complete' ? done() \
    : addEventListener('load', () => setTimeout(done, 0)))";

/// One open page. Dropping it ends the browser.
pub struct Page {
    browser: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    _profile: tempfile::TempDir,
    session: String,
    last_id: u64,
    messages: Vec<String>,
}

impl Page {
    /// Opens an address and waits until it has loaded; `None` without Chromium.
    pub fn open(url: &str, width: u32) -> Option<Self> {
        let names = ["chromium", "chromium-headless-shell"];
        let is_there = |name: &&str| {
            std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
                .any(|directory| directory.join(name).is_file())
        };
        let program = names.into_iter().find(is_there)?;
        let profile = tempfile::tempdir().expect("a temporary directory");
        let script = format!(
            "exec timeout -s KILL {LONGEST} {program} {FLAGS} --window-size={width},1400 --user-data-dir='{}' about:blank 3<&0 4>&1 </dev/null >/dev/null 2>&1",
            profile.path().display()
        );
        let mut browser = Command::new("sh")
            .args(["-c", &script])
            .env("TMPDIR", profile.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh is there");
        let to = browser.stdin.take().expect("piped");
        let from = BufReader::new(browser.stdout.take().expect("piped"));
        let mut page = Self {
            browser,
            to,
            from,
            _profile: profile,
            session: String::new(),
            last_id: 0,
            messages: Vec::new(),
        };
        page.attach(width);
        page.go(url);
        Some(page)
    }

    /// Goes to another address.
    pub fn go(&mut self, url: &str) {
        self.call("Page.navigate", &json!({ "url": url }));
        // Asked of the page: its event may come before the answer to the command.
        self.evaluate(LOADED);
    }

    fn attach(&mut self, width: u32) {
        let target = self.first_page();
        let attached = self.call(
            "Target.attachToTarget",
            &json!({"targetId": target, "flatten": true}),
        );
        self.session = attached["sessionId"]
            .as_str()
            .expect("a session")
            .to_owned();
        for domain in ["Page.enable", "Runtime.enable", "Log.enable"] {
            self.call(domain, &json!({}));
        }
        self.call(
            "Emulation.setDeviceMetricsOverride",
            &json!({"width": width, "height": 1400, "deviceScaleFactor": 1, "mobile": false}),
        );
        // The machine's own preference must not decide a test.
        self.call(
            "Emulation.setEmulatedMedia",
            &json!({"features": [{"name": "prefers-color-scheme", "value": "light"}]}),
        );
    }

    /// The id of the page that the browser opens by itself, soon after it answers.
    fn first_page(&mut self) -> Value {
        loop {
            let targets = self.call("Target.getTargets", &json!({}));
            let all = targets["targetInfos"].as_array();
            let page = all.and_then(|all| all.iter().find(|t| t["type"] == "page"));
            if let Some(page) = page {
                return page["targetId"].clone();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Sends a command and waits for its result.
    pub fn call(&mut self, method: &str, parameters: &Value) -> Value {
        let answer = self.ask(method, parameters);
        answer.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// The same where the browser may refuse.
    fn ask(&mut self, method: &str, parameters: &Value) -> Result<Value, Value> {
        self.last_id += 1;
        let id = self.last_id;
        let mut message = json!({"id": id, "method": method, "params": parameters});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).expect("the browser reads");
        loop {
            let answer = self.read();
            if answer["id"] == id {
                return if answer["error"].is_null() {
                    Ok(answer["result"].clone())
                } else {
                    Err(answer["error"].clone())
                };
            }
        }
    }

    /// Reads one message; keeps what the page said on its console.
    fn read(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.from
            .read_until(0, &mut bytes)
            .expect("the browser writes");
        assert!(!bytes.is_empty(), "the browser ended");
        bytes.pop();
        let message: Value = serde_json::from_slice(&bytes).expect("the protocol is JSON");
        let parameters = &message["params"];
        match message["method"].as_str() {
            Some("Runtime.exceptionThrown") => {
                self.messages
                    .push(parameters["exceptionDetails"].to_string());
            }
            Some("Runtime.consoleAPICalled") => self.messages.push(parameters["args"].to_string()),
            Some("Log.entryAdded") => self.messages.push(parameters["entry"]["text"].to_string()),
            _ => {}
        }
        message
    }

    /// What the page has said on its console: errors, policy violations, anything.
    pub fn messages(&mut self) -> Vec<String> {
        self.evaluate("0");
        self.messages.clone()
    }

    /// The value of an expression in the page; promises are awaited.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let result = self.call(
            "Runtime.evaluate",
            &json!({"expression": expression, "awaitPromise": true, "returnByValue": true}),
        );
        assert!(
            result["exceptionDetails"].is_null(),
            "{expression}: {result}"
        );
        result["result"]["value"].clone()
    }

    /// Waits until an expression is true in the page: for what comes with a later frame, or after
    /// the page has gone elsewhere by itself.
    pub fn wait_until(&mut self, what: &str) {
        let expression = format!(
            "new Promise(done => {{ const look = () => ({what}) ? done() : setTimeout(look, 20); look(); }})"
        );
        let asked = json!({"expression": expression, "awaitPromise": true});
        while let Err(error) = self.ask("Runtime.evaluate", &asked) {
            let went = error["message"].as_str();
            let went = went.is_some_and(|m| m.contains("navigated") || m.contains("context"));
            assert!(went, "{what}: {error}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The whole page as PNG.
    pub fn screenshot(&mut self) -> Vec<u8> {
        let shot = self.call(
            "Page.captureScreenshot",
            &json!({"captureBeyondViewport": true}),
        );
        decode(&shot["data"])
    }

    /// The page printed as PDF.
    pub fn pdf(&mut self) -> Vec<u8> {
        let pdf = self.call("Page.printToPDF", &json!({"printBackground": true}));
        decode(&pdf["data"])
    }
}

fn decode(data: &Value) -> Vec<u8> {
    let text = data.as_str().expect("base64");
    base64::engine::general_purpose::STANDARD
        .decode(text)
        .expect("base64")
}

impl Drop for Page {
    fn drop(&mut self) {
        // Asked to close, it ends its own processes; one that does not within 3 s is killed.
        let _ = self
            .to
            .write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0");
        for _ in 0..150 {
            if matches!(self.browser.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.browser.kill();
        let _ = self.browser.wait();
    }
}
