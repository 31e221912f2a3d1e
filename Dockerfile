# All binaries. static: without cgo, runs anywhere; no GPU metrics. exporter-gpu: the exporter with NVML,
# which needs cgo and glibc; the NVIDIA container toolkit puts libnvidia-ml.so.1 in.
FROM golang:1.26.8-bookworm AS source
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .

FROM source AS build
RUN CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o /out/ ./exporter ./loadgen ./analyze ./alerts ./dashboards

FROM source AS build-gpu
RUN CGO_ENABLED=1 go build -trimpath -o /out/ ./exporter

FROM debian:bookworm-20250811-slim AS exporter-gpu
COPY --from=build-gpu /out/exporter /usr/local/bin/
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=utility
USER 65532:65532
EXPOSE 10510
CMD ["exporter"]

FROM alpine:3.22.1 AS static
COPY --from=build /out/ /usr/local/bin/
# A named volume takes over the owner of the folder that it is mounted on.
RUN mkdir /runs /reports && chown 65532:65532 /runs /reports
USER 65532:65532
EXPOSE 10510 10511 10512 10513
CMD ["loadgen", "--help"]
