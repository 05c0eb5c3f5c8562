# The whole service in one static binary on an empty root: no shell, no libc, no package manager.
#
#   docker build --tag limited-login .
#   docker run --rm --publish 8080:8080 --env LIMITED_LOGIN_APP_IDS=<your app id> limited-login
#
# The file names no architecture: it builds for linux/arm64 as for linux/amd64, by reading; it was tried on amd64 alone.
#
# Nothing is written at run time, so it runs with --read-only and --cap-drop=ALL as it is.

# The base image's digest, to build from the very same one again: --build-arg SWIFT_DIGEST=@sha256:...
ARG SWIFT_DIGEST=
# The version for the labels: the program's own, or the build fails.
ARG VERSION=0.3.0-dev
FROM swift:6.3.1-bookworm${SWIFT_DIGEST} AS build
# A pinned Debian version would be withdrawn with the next security fix, and the fix is what is wanted.
# hadolint ignore=DL3008
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends ca-certificates libssl-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /build

# Dependencies in a layer of their own: it is kept until the manifest changes.
# config/packages records the version of each package, those of the packages' own dependencies too. Each is resolved to
# its version, and the build fails if the result is not exactly the list.
COPY Package.swift config/packages ./
RUN swift package resolve \
    && while read -r package version; do swift package resolve "$package" --version "$version" || exit; done < packages \
    && sed -n '/"identity"/{s/.*: "\(.*\)",/\1/;h}; /"version" : "/{s/.*: "\(.*\)"/\1/;H;x;s/\n/ /p}' Package.resolved >resolved \
    && diff packages resolved

# The manifest names the test targets, so their folders must be there although nothing in them is compiled.
# Debug information would be stripped anyway, and with it two builds of the same source differ. The linker optimises all
# modules together: a request costs 1.5 to 4 % less.
COPY Sources Sources
COPY config/llms.txt config/llms.txt
COPY Tests Tests
# The program tells the commit too, if it is given: --build-arg REVISION=$(git rev-parse --short=12 HEAD)
ARG REVISION=
RUN LIMITED_LOGIN_COMMIT=$REVISION swift build --configuration release --product limited-login -debug-info-format none \
      -Xswiftc -static-executable -Xlinker --strip-all --experimental-lto-mode full -Xswiftc -use-ld=lld

# The trust store lies where Debian keeps it, and where the linked OpenSSL looks when told nothing.
# /etc/nsswitch.conf names the two sources of host names that glibc carries within itself.
ARG VERSION
RUN install -D "$(swift build --configuration release --show-bin-path)/limited-login" /image/limited-login \
    && test "$(/image/limited-login --version | sed 's/+.*//')" = "$VERSION" \
    && install -D --mode=644 /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ca-certificates.crt \
    && install -d /image/usr/lib/ssl \
    && ln -s /etc/ssl/certs/ca-certificates.crt /image/usr/lib/ssl/cert.pem \
    && echo 'hosts: files dns' > /image/etc/nsswitch.conf \
    && install -d --mode=700 /data

FROM scratch
ARG VERSION
ARG REVISION=unknown
# The address of the repository that the image was built from.
ARG SOURCE=unknown
LABEL org.opencontainers.image.title="limited-login" \
      org.opencontainers.image.description="Verifies Facebook Limited Login id tokens and returns the Profile" \
      org.opencontainers.image.source="${SOURCE}" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /image /
# A volume that is mounted here belongs to the service's user.
COPY --from=build --chown=65532:65532 /data /var/lib/limited-login
# The runtime's crash reporter is a program of its own, which is not here: do not look for it at every start.
# PORT is the port of `listen`, unless that is set; hosts of containers set it too.
ENV PORT=8080 \
    LIMITED_LOGIN_ADMIN_LISTEN=0.0.0.0:8081 \
    SWIFT_BACKTRACE=enable=no
USER 65532:65532
EXPOSE 8080 8081
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s --retries=3 CMD ["/limited-login", "healthcheck"]
ENTRYPOINT ["/limited-login"]
CMD ["serve"]
