# The commands of this project. `make help` lists them.

# rustup puts cargo there, and a fresh shell may not know yet.
export PATH := $(HOME)/.cargo/bin:$(PATH)

TARGET := $(or $(CARGO_TARGET_DIR),target)
LOADLINE := $(TARGET)/release/loadline

# What `make demo` asks: how small can this service be with the first compiler only, which halves its
# start? `make demo PROVE=20` counts that many fresh starts at the answer.
PROVE ?=
# Where systemd owns the cgroups (v2), a trial needs a scope that systemd leaves alone.
SCOPE := $(shell [ -d /run/systemd/system ] && [ -e /sys/fs/cgroup/cgroup.controllers ] && \
	echo systemd-run $$([ $$(id -u) -eq 0 ] || echo --user) --quiet --scope -p Delegate=yes)
DEMO = $(SCOPE) $(LOADLINE) size --cpu 1 --jvm 'c1: -XX:TieredStopAtLevel=1' \
	--slo 'p99<250ms,errors<1%' --rate 100/s --warm-up 2s --duration 4s \
	--min-memory 128Mi --max-memory 512Mi$(if $(PROVE), --prove $(PROVE)) \
	--ready /health --url 'http://localhost:8080/owners?lastName=Da' \
	--report build/demo-report.html \
	-- java -jar build/workloads/spring-web.jar

.PHONY: help setup setup-build setup-demo build release workloads demo docs test test-kubernetes fuzz check clean setup-docs

help:                ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' Makefile

setup:               ## installs what this machine lacks (Debian, Ubuntu; as root)
	@scripts/setup.sh

setup-build:
	@scripts/setup.sh build

setup-demo:
	@scripts/setup.sh demo

build: setup-build   ## builds the programs, optimised, into target/release
	cargo build --release --locked

release:             ## static programs, archives, packages and images for x86-64 and ARM, into build/release
	@scripts/setup.sh release
	cargo xtask release

workloads: setup-demo ## builds the Java workloads into build/workloads, when they changed
	@cargo xtask workloads

demo: workloads build ## sizes the bundled Spring Boot service; ends with a recommendation
	$(DEMO)

docs: setup-docs     ## the documents as a site with search, build/site/index.html
	@cargo xtask docs

setup-docs:
	@scripts/setup.sh docs

test:                ## everything that checks the project; ends with the count
	@scripts/setup.sh machine
	@cargo xtask test

test-kubernetes:     ## trials as pods on the cluster of KUBECONFIG, which has loadline's image
	@scripts/test-kubernetes.sh
	@scripts/test-kubernetes-kills.sh

fuzz: setup          ## looks for inputs that no parser expects, SECONDS=20 for each
	@cargo xtask fuzz $(or $(SECONDS),20)

check: setup         ## the quick part: format, lints, invariants
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo xtask check

clean:               ## removes what was built; results stay
	cargo clean
	rm -rf build workloads/*/target
