// A store of three documents, in the order of their ranking.
export const DOCUMENTS = [
  { id: "d1", text: "Paris is the capital of France." },
  { id: "d2", text: "France is a country in Europe." },
  { id: "d3", text: "Berlin is the capital of Germany." },
];
