// SPDX-License-Identifier: Apache-2.0
// Error texts and flags are searched for as they are pasted. The search itself would take "-1" and "--http-port" for
// words that must not be there and "config:" for the name of a field, and finds pages for every "to" and "or".
(() => {
  const QUERY = 2; // of the messages to the search's worker
  const COMMON = new Set(
    "a an and are as at be but by can could do does for from has have if in is it its of on or that the there this to was with".split(" "),
  );

  const searched = (text) => {
    const words = text
      .split(/[\s'"`,.:;!?()[\]{}<>=…*^~+|/\\]+/)
      .map((word) => word.replace(/^-+|-+$/g, ""))
      .filter(Boolean);
    // While few words have been typed, the last may be the beginning of one. "^1" makes the others whole.
    const isOpen = (at) => words.length < 4 && at === words.length - 1;
    const isTelling = (word) => word.length > 1 && !COMMON.has(word.toLowerCase()) && !/^\d+$/.test(word);
    return words
      .filter((word, at) => isOpen(at) || isTelling(word))
      .map((word) => (word === words.at(-1) && isOpen(words.length - 1) ? word : `${word}^1`))
      .join(" ");
  };

  const post = Worker.prototype.postMessage;
  Worker.prototype.postMessage = function (message, ...rest) {
    const isQuery = message && message.type === QUERY && typeof message.data === "string";
    return post.call(this, isQuery ? { ...message, data: searched(message.data) } : message, ...rest);
  };
})();
