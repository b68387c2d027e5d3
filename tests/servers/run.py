#!/usr/bin/env python3
"""loadline against real servers: counts that must be right, whatever the server's habits.

Usage: tests/servers/run.py [--servers jdk,tomcat9,tomcat10,tomcat11,liberty,spring,nginx]
                            [--java JAVA_HOME] [--cache build/servers]

Fetches Tomcat and Open Liberty with Maven into --cache, starts each server on a loopback port with
an access log where it has one, and checks with `loadline load` (from target/debug or
$CARGO_TARGET_DIR/debug, or LOADLINE):
  closed     4000 requests, 4000 good, 4000 lines in the log
  open       400/s for 5 s, all good
  gzip       Accept-Encoding: gzip, and chunked where the server does that
  close      Connection: close on every request
  missing    a page that is not there: http_4xx, each of them
  head, post HEAD; POST with Expect: 100-continue (405 of a static page is an answer, too)
  log        `loadline profile` of the access log: the requests, their rate per second, the logged
             durations of a page that sleeps 300 ms, in the unit of this server
  kill -9    in the middle of a run: outcomes add up to the schedule
One line for each server and check; exit code 1 when one is wrong. A server that cannot be fetched
or started is named as SKIP.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
PORT = 18090
URL = f"http://127.0.0.1:{PORT}"
VALVE = '%h %l %u %t "%r" %s %b %D'
SLEEPY = ('<%@ page contentType="text/plain" session="false" %>'
          '<% Thread.sleep(300); %>slept\n')
TOMCATS = {"tomcat9": "9.0.117", "tomcat10": "10.1.49", "tomcat11": "11.0.14"}
LIBERTY = "26.0.0.3"


def fetch(artifact, cache):
    """The file of a Maven artifact; fetched when it is not there."""
    _, name, version, kind = artifact.split(":")
    path = cache / f"{name}-{version}.{kind}"
    if not path.exists():
        subprocess.run(["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={artifact}",
                        f"-DoutputDirectory={cache}"], check=True)
    return path


class Tomcat:
    """A plain Tomcat: static pages with gzip, a JSP, the access log valve."""
    access_log, sleeps, gzips = True, True, True

    def __init__(self, name, cache, java):
        self.name, self.java = name, java
        self.flags = ["--server", "tomcat9" if name == "tomcat9" else "tomcat10",
                      "--format", VALVE]
        package = fetch(f"org.apache.tomcat:tomcat:{TOMCATS[name]}:zip", cache)
        self.home = cache / f"apache-tomcat-{TOMCATS[name]}"
        shutil.rmtree(self.home, ignore_errors=True)
        shutil.unpack_archive(package, cache)
        pages = self.home / "webapps" / "ROOT"
        shutil.rmtree(pages)
        pages.mkdir()
        (pages / "index.html").write_text("hello, world\n" * 500, encoding="ascii")
        (pages / "sleep.jsp").write_text(SLEEPY, encoding="ascii")
        for other in ("docs", "examples", "manager", "host-manager"):
            shutil.rmtree(self.home / "webapps" / other)
        settings = self.home / "conf" / "server.xml"
        text = settings.read_text(encoding="utf-8")
        text = text.replace('port="8005"', 'port="-1"')
        text = text.replace('port="8080"', f'port="{PORT}" address="127.0.0.1" compression="on"')
        begin = text.index('pattern="', text.index("AccessLogValve"))
        end = text.index('"', begin + len('pattern="'))
        quoted = VALVE.replace('"', "&quot;")
        text = text[:begin] + f'pattern="{quoted}" buffered="false' + text[end:]
        settings.write_text(text, encoding="utf-8")

    def command(self):
        home = self.home
        return [f"{self.java}/bin/java", "-Xmx256m", f"-Dcatalina.home={home}",
                f"-Dcatalina.base={home}", f"-Djava.io.tmpdir={home}/temp", "-cp",
                f"{home}/bin/bootstrap.jar:{home}/bin/tomcat-juli.jar",
                "org.apache.catalina.startup.Bootstrap", "start"]

    def log(self):
        return sorted((self.home / "logs").glob("localhost_access_log.*"))[-1]


class Liberty:
    """Open Liberty with the servlet feature and an access log in Apache's own form."""
    access_log, sleeps, gzips = True, False, False

    def __init__(self, name, cache, java):
        self.name, self.java = name, java
        self.flags = ["--server", "httpd", "--format", "%h %i %u %t \"%r\" %s %b %D"]
        # The whole runtime: its features one by one are not all in Maven's repository.
        package = fetch(f"io.openliberty:openliberty-runtime:{LIBERTY}:zip", cache)
        self.home = cache / "wlp"
        shutil.rmtree(self.home, ignore_errors=True)
        subprocess.run(["unzip", "-q", str(package), "-d", str(cache)], check=True)
        subprocess.run([str(self.home / "bin" / "server"), "create"], check=True,
                       env={**os.environ, "JAVA_HOME": java}, stdout=subprocess.DEVNULL)
        server = self.home / "usr" / "servers" / "defaultServer"
        pages = server / "apps" / "pages.war"
        pages.mkdir(parents=True, exist_ok=True)
        (pages / "index.html").write_text("hello, world\n" * 500, encoding="ascii")
        (server / "server.xml").write_text(f"""<server>
  <featureManager><feature>servlet-6.0</feature></featureManager>
  <httpEndpoint id="defaultHttpEndpoint" host="127.0.0.1" httpPort="{PORT}" httpsPort="-1">
    <accessLogging filepath="${{server.output.dir}}/logs/access.log"
                   logFormat='%h %i %u %t "%r" %s %b %D' />
    <httpOptions maxKeepAliveRequests="-1"/>
  </httpEndpoint>
  <webApplication location="pages.war" contextRoot="/"/>
</server>
""", encoding="utf-8")

    def command(self):
        return ["env", f"JAVA_HOME={self.java}", str(self.home / "bin" / "server"), "run",
                "defaultServer"]

    def log(self):
        return self.home / "usr" / "servers" / "defaultServer" / "logs" / "access.log"


class Jdk:
    """The HTTP server of the JDK (com.sun.net.httpserver): chunked answers, no access log."""
    access_log, sleeps, gzips = False, False, False

    def __init__(self, name, cache, java):
        self.name, self.java = name, java
        self.source = cache / "Chunked.java"
        self.source.write_text("""
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;

public class Chunked {
    public static void main(String[] arguments) throws Exception {
        int port = Integer.parseInt(arguments[0]);
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
        byte[] body = "hello, world\\n".repeat(500).getBytes();
        server.createContext("/", exchange -> {
            exchange.getRequestBody().readAllBytes();
            boolean found = exchange.getRequestURI().getPath().equals("/");
            boolean head = exchange.getRequestMethod().equals("HEAD");
            // A length of 0 is chunked, -1 is no body.
            exchange.sendResponseHeaders(found ? 200 : 404, head || !found ? -1 : 0);
            if (found && !head) {
                exchange.getResponseBody().write(body);
            }
            exchange.close();
        });
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.start();
    }
}
""", encoding="ascii")

    def command(self):
        return [f"{self.java}/bin/java", "-Xmx128m", str(self.source), str(PORT)]


class Spring:
    """The bundled Spring Boot application: Tomcat inside, with its access log switched on."""
    access_log, sleeps, gzips = True, False, True

    def __init__(self, name, cache, java):
        self.name, self.java = name, java
        self.flags = ["--server", "tomcat10", "--format", VALVE]
        self.jar = ROOT / "build" / "workloads" / "spring-web.jar"
        if not self.jar.exists():
            raise OSError("build it with: make workloads")
        self.base = cache / "spring"
        shutil.rmtree(self.base, ignore_errors=True)
        self.base.mkdir()

    path = "/owners?lastName=Da"

    def command(self):
        return [f"{self.java}/bin/java", "-Xmx256m", "-jar", str(self.jar),
                f"--server.port={PORT}", "--server.address=127.0.0.1",
                f"--server.tomcat.basedir={self.base}", "--server.tomcat.accesslog.enabled=true",
                f"--server.tomcat.accesslog.pattern={VALVE}",
                "--server.tomcat.accesslog.buffered=false", "--server.compression.enabled=true",
                "--server.compression.min-response-size=64"]

    def log(self):
        return sorted((self.base / "logs").glob("access_log.*"))[-1]


class Nginx:
    """nginx with one worker, combined log with the request time."""
    access_log, sleeps, gzips = True, False, True

    def __init__(self, name, cache, _):
        self.name = name
        if not shutil.which("nginx"):
            raise OSError("nginx is not installed")
        form = ('$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent '
                '$request_time')
        self.flags = ["--server", "nginx", "--format", form]
        self.base = cache / "nginx"
        shutil.rmtree(self.base, ignore_errors=True)
        self.base.mkdir()
        (self.base / "index.html").write_text("hello, world\n" * 500, encoding="ascii")
        (self.base / "nginx.conf").write_text(f"""
daemon off; master_process off; worker_processes 1; pid {self.base}/pid; error_log stderr;
events {{ worker_connections 1024; }}
http {{
  log_format timed '{form}'; access_log {self.base}/access.log timed;
  keepalive_requests 1000000; gzip on; gzip_types *; gzip_min_length 1;
  server {{ listen 127.0.0.1:{PORT}; root {self.base}; }}
}}
""", encoding="ascii")

    def command(self):
        return ["nginx", "-p", str(self.base), "-c", str(self.base / "nginx.conf")]

    def log(self):
        return self.base / "access.log"


SERVERS = {"jdk": Jdk, "tomcat9": Tomcat, "tomcat10": Tomcat, "tomcat11": Tomcat,
           "liberty": Liberty, "spring": Spring, "nginx": Nginx}
wrong = 0


def say(server, check, is_right, text):
    global wrong
    wrong += not is_right
    print(f"{server:9} {check:8} {'ok   ' if is_right else 'WRONG'} {text}", flush=True)


def loadline():
    given = os.environ.get("LOADLINE")
    target = os.environ.get("CARGO_TARGET_DIR", ROOT / "target")
    return given or str(pathlib.Path(target) / "debug" / "loadline")


def load(path, *flags):
    done = subprocess.run([loadline(), "load", URL + path, *flags, "--json"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError:
        sys.exit(f"loadline: {done.stderr}")


def wait_ready(process, path):
    for _ in range(1800):
        if process.poll() is not None:
            raise OSError("it ended by itself")
        try:
            with urllib.request.urlopen(URL + path, timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise OSError("it does not answer")


def lines(server):
    time.sleep(1.5)  # Servers write their logs when they like.
    with open(server.log(), encoding="utf-8") as log:
        return sum(1 for _ in log)


def answers(name, server, path):
    before = lines(server) if server.access_log else 0
    got = load(path, "--closed", "-n", "4000", "-c", "20")
    logged = lines(server) - before if server.access_log else 4000
    say(name, "closed", got["ok"] == logged == 4000,
        f"{got['ok']} good, {logged if server.access_log else 'no'} log lines")
    got = load(path, "--rate", "400/s", "-d", "5s", "-c", "20")
    say(name, "open", got["requests"] == got["ok"] == 2000, f"{got['ok']} of {got['requests']}")
    plain = load(path, "--closed", "-n", "200", "-c", "5")
    got = load(path, "--closed", "-n", "200", "-c", "5", "-H", "Accept-Encoding: gzip")
    def size(result):
        return result["body_bytes_per_second"] * result["duration_seconds"] / 200
    is_right = got["ok"] == 200 and (size(got) < size(plain) or not server.gzips)
    say(name, "gzip", is_right, f"{size(plain):.0f} bytes plain, {size(got):.0f} asked for gzip")
    got = load(path, "--closed", "-n", "500", "-c", "5", "-H", "Connection: close")
    say(name, "close", got["ok"] == 500, f"{got['ok']} good, {got['errors_by_kind']}")
    got = load("/missing-page", "--closed", "-n", "200", "-c", "5")
    say(name, "missing", got["errors_by_kind"] == {"http_4xx": 200}, str(got["errors_by_kind"]))
    got = load(path, "--closed", "-n", "200", "-c", "5", "-X", "HEAD")
    say(name, "head", got["ok"] == 200 and got["body_bytes_per_second"] == 0,
        f"{got['ok']} good, {got['errors_by_kind']}")
    got = load(path, "--closed", "-n", "200", "-c", "5", "-X", "POST", "-H",
               "Expect: 100-continue", "--body", "x" * 1000, "--timeout", "5s")
    known = got["ok"] + got["errors_by_kind"].get("http_4xx", 0)
    say(name, "post", known == 200, f"{got['ok']} good, {got['errors_by_kind']}")


def profiled(name, server, path):
    """The log of a run with a known rate, alone in its file."""
    slow = "/sleep.jsp" if server.sleeps else path
    # The first request compiles the page.
    load(slow, "--closed", "-n", "1", "-c", "1", "--timeout", "60s")
    load(slow, "--closed", "-n", "120", "-c", "60")
    lines(server)
    os.truncate(server.log(), 0)
    got = load(slow, "--rate", "100/s", "-d", "6s", "-c", "60")
    lines(server)
    done = subprocess.run([loadline(), "profile", *server.flags, "--interval", "1",
                           str(server.log())], text=True, capture_output=True, check=False)
    if done.returncode:
        return say(name, "log", False, done.stderr)
    counts = [round(float(rate)) for rate in
              done.stdout.split("rates = [")[1].split("]")[0].split(",") if rate.strip()]
    # The run does not begin with a second of the clock: the first and the last are parts.
    inner = counts[2:-2]
    durations = [line for line in done.stderr.splitlines() if line.startswith("logged durations")]
    text = durations[0].removeprefix("logged durations: ")
    p50 = float(text.split()[1])
    is_right = sum(counts) == got["requests"] == 600 and all(80 <= c <= 120 for c in inner)
    is_right &= not server.sleeps or 295 <= p50 <= 400
    say(name, "log", is_right, f"{sum(counts)} of 600, per second {min(inner)} to {max(inner)}, "
        f"{text}; {done.stderr.splitlines()[0]}")


def killed(name, process, path):
    generator = subprocess.Popen([loadline(), "load", URL + path, "--rate", "500/s", "-d", "4s",
                                  "--timeout", "2s", "--json"], text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    time.sleep(2)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    got = json.loads(generator.communicate()[0])
    total = got["ok"] + sum(got["errors_by_kind"].values()) + got["unfinished"]
    say(name, "kill -9", total == got["requests"] == 2000 and got["ok"] > 0,
        f"{got['ok']} good, {got['errors_by_kind']}, {got['unfinished']} unfinished: "
        f"{total} of {got['requests']}")


def check(name, cache, java):
    try:
        server = SERVERS[name](name, cache, java)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"SKIP {name}: {error}", flush=True)
        return
    path = getattr(server, "path", "/")
    with open(cache / f"{name}.out", "w", encoding="utf-8") as output:
        process = subprocess.Popen(server.command(), stdout=output, stderr=output,
                                   start_new_session=True)
    try:
        wait_ready(process, path)
        answers(name, server, path)
        if server.access_log:
            profiled(name, server, path)
        killed(name, process, path)
    except OSError as error:
        print(f"SKIP {name}: {error}; see {cache}/{name}.out", flush=True)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--servers", default=",".join(SERVERS))
    parser.add_argument("--java", default=os.environ.get("JAVA_HOME"))
    parser.add_argument("--cache", default=str(ROOT / "build" / "servers"))
    arguments = parser.parse_args()
    java = arguments.java or str(pathlib.Path(os.path.realpath(shutil.which("java"))).parents[1])
    cache = pathlib.Path(arguments.cache).resolve()
    cache.mkdir(parents=True, exist_ok=True)
    for name in arguments.servers.split(","):
        check(name, cache, java)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
