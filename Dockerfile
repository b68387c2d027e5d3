# Images of the two programs, from a directory that holds them: static, nothing else in the image.
# `cargo xtask release` builds the programs and these images. How they run: docs/guides/images.md,
# "loadline as an image"; docs/guides/launcher.md.
FROM scratch AS launcher
COPY loadline-launch /loadline-launch
ENTRYPOINT ["/loadline-launch"]

FROM scratch
COPY loadline /loadline
ENV LOADLINE_IMAGE=1
ENTRYPOINT ["/loadline"]
