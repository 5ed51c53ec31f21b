# docker build -t wolo . && docker run --rm -e ANTHROPIC_API_KEY -v "$PWD:/work" wolo -p "review this repository"
FROM python:3.13-slim@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b AS build
WORKDIR /src
COPY .ci .ci
RUN python -m venv /opt/build \
    && /opt/build/bin/python -m pip install --no-cache-dir --require-hashes --only-binary :all: -r .ci/requirements/build.txt \
    && python -m venv /opt/wolo \
    && /opt/wolo/bin/python -m pip install --no-cache-dir --compile --require-hashes --only-binary :all: -r .ci/requirements/run.txt
COPY pyproject.toml README.md LICENSE ./
COPY docs/reference/wolo.1 docs/reference/
COPY wolo wolo
RUN /opt/build/bin/python -m pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /tmp/wheel . \
    && /opt/wolo/bin/python -m pip install --no-cache-dir --compile --no-deps --no-index /tmp/wheel/*.whl

FROM python:3.13-slim@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends bubblewrap git \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 wolo \
    && install --directory --owner=wolo /work
COPY --from=build /opt/wolo /opt/wolo
ENV PATH=/opt/wolo/bin:$PATH
USER 1000
WORKDIR /work
ENTRYPOINT ["wolo"]
