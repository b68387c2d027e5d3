# loadline's own image: one static program. How it runs: docs/guides/images.md, "loadline as an image".
#
#   podman build -t loadline .
FROM rust:1.95-bookworm AS build
WORKDIR /loadline
COPY . .
# For the machine's own target, so that build scripts and macros are not static.
RUN RUSTFLAGS="-C target-feature=+crt-static" \
    cargo build --release --locked -p loadline-cli --target "$(rustc -vV | sed -n 's/^host: //p')" \
    && cp target/*/release/loadline /loadline/loadline-static

FROM scratch
COPY --from=build /loadline/loadline-static /loadline
ENV LOADLINE_IMAGE=1
ENTRYPOINT ["/loadline"]
