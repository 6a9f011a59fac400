// The order of the search's results: guides and API, then the other pages for users, then pages for
// contributors and measurements. Sphinx puts this file before its own script, which then keeps its values.
const FIRST = /^(guide|api)\//;
const LAST =
  /^(contributing|decisions|design)\/|^project\/(?!examples|CHANGELOG)|^(testing|reference\/releases)$/;

var Scorer = {
  // A title match has 15 by Sphinx' values below. A page for contributors has less than 100.
  score: ([docname, title, anchor, description, score]) =>
    score + (FIRST.test(docname) ? 15 : LAST.test(docname) ? -100 : 0),

  // Sphinx' values.
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
