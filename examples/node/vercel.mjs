// The Vercel AI SDK with a tool that searches, traced by its own telemetry:
//
//   steelyard collect &
//   OPENAI_API_KEY=... node vercel.mjs
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, stepCountIs, tool } from "ai";
import { z } from "zod";

import { DOCUMENTS } from "./documents.mjs";
import { provider } from "./telemetry.mjs";

const server = createOpenAICompatible({
  name: "openai",
  apiKey: process.env.OPENAI_API_KEY,
  baseURL: process.env.OPENAI_BASE_URL ?? "https://api.openai.com/v1",
});

const { text } = await generateText({
  model: server(process.env.MODEL ?? "gpt-4o-mini"),
  prompt: process.argv[2] ?? "What is the capital of France?",
  tools: {
    search: tool({
      description: "Search the documents",
      inputSchema: z.object({ query: z.string() }),
      execute: async () => DOCUMENTS.map(({ text }) => text),
    }),
  },
  stopWhen: stepCountIs(4),
  experimental_telemetry: { isEnabled: true },
});

console.log(text);
await provider.shutdown();
