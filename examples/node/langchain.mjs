// A RAG chain of LangChain.js, traced by OpenInference:
//
//   steelyard collect &
//   OPENAI_API_KEY=... node langchain.mjs
import * as callbacks from "@langchain/core/callbacks/manager";
import { awaitAllCallbacks } from "@langchain/core/callbacks/promises";
import { Document } from "@langchain/core/documents";
import { StringOutputParser } from "@langchain/core/output_parsers";
import { ChatPromptTemplate } from "@langchain/core/prompts";
import { BaseRetriever } from "@langchain/core/retrievers";
import { RunnablePassthrough, RunnableSequence } from "@langchain/core/runnables";
import { ChatOpenAI } from "@langchain/openai";
import { LangChainInstrumentation } from "@arizeai/openinference-instrumentation-langchain";

import { DOCUMENTS } from "./documents.mjs";
import { provider } from "./telemetry.mjs";

new LangChainInstrumentation({ tracerProvider: provider }).manuallyInstrument(callbacks);

class Store extends BaseRetriever {
  lc_namespace = ["example"];
  async _getRelevantDocuments(_query) {
    return DOCUMENTS.map(({ id, text }) => new Document({ id, pageContent: text }));
  }
}

const model = new ChatOpenAI({
  model: process.env.MODEL ?? "gpt-4o-mini",
  configuration: { baseURL: process.env.OPENAI_BASE_URL },
});
const chain = RunnableSequence.from([
  {
    context: new Store().pipe((documents) => documents.map((one) => one.pageContent).join("\n\n")),
    question: new RunnablePassthrough(),
  },
  ChatPromptTemplate.fromTemplate("Answer from the context.\nContext: {context}\nQuestion: {question}"),
  model,
  new StringOutputParser(),
]);

console.log(await chain.invoke(process.argv[2] ?? "What is the capital of France?"));
// LangChain.js tells tracers of a chain's end in the background: without this the first span would be missing.
await awaitAllCallbacks();
await provider.shutdown();
