// Spans go to `steelyard collect`, or to a Collector in front of it.
//
// OTEL_EXPORTER_OTLP_TRACES_ENDPOINT says where; http://127.0.0.1:4318/v1/traces is the default.
// OTEL_EXPORTER_OTLP_TRACES_HEADERS="authorization=Bearer%20TOKEN" gives the token, where one is needed.
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { BatchSpanProcessor, NodeTracerProvider } from "@opentelemetry/sdk-trace-node";

export const provider = new NodeTracerProvider({
  resource: resourceFromAttributes({ "service.name": "node-rag" }),
  spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
});
provider.register();
