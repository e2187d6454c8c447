/**
 * What the recorder has each Node of a run load before the program (NODE_OPTIONS). It puts the
 * variable back, so that programs and their children see their own, and loads the hooks beside it.
 *
 * Invariant: every Node can read this text (ES5), and no line of it throws. A Node that cannot
 * load the hooks runs the program without them.
 */
(function () {
  "use strict";
  var env = process.env;
  try {
    // The file's own name may differ in its directory, which a link can lead to.
    if (String(env.NODE_OPTIONS).indexOf("/backstory-functions.cjs") >= 0) {
      var own = env.BACKSTORY_NODE_OPTIONS;
      delete env.BACKSTORY_NODE_OPTIONS;
      if (own === undefined) delete env.NODE_OPTIONS;
      else env.NODE_OPTIONS = own;
    }
  } catch (error) {
    // The program comes first.
  }
  try {
    require("./backstory-functions-hooks.cjs");
  } catch (error) {
    // An old Node, or one that may not read files.
  }
  try {
    // The program finds its own modules there.
    delete require.cache[require.resolve("./backstory-functions-hooks.cjs")];
    delete require.cache[__filename];
  } catch (error) {
    // It sees two more.
  }
})();
