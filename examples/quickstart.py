"""Score two answers without a key or a network."""

from steelyard import Context, Record, evaluate

contexts = (Context(text="The Eiffel Tower was finished in 1889. It is 330 metres high."),)
question = "When was the Eiffel Tower finished?"
good = Record(id="good", question=question, contexts=contexts, answer="It was finished in 1889.")
poor = good.replace(id="poor", answer="It was finished in 1925.")

results = evaluate([good, poor], progress=False)
print(results)
print(results[1]["faithfulness"].explanation)
