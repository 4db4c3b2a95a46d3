// The page of the server as one file: its own script and style, and the answers that it would have asked for. It opens
// from a disk, and asks for nothing: a policy in the file forbids it to.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace flamewire::profile {

struct HtmlPage {
    std::string_view title;
    std::string_view style, script;  // of the page; the script finds the answers in the element flamewire-answers
    std::string_view answers;        // JSON, as web/src/api/saved.ts describes
};

// The answers are in it as base64 of their zlib stream, so no name can end an element.
Result<std::string> html(const HtmlPage& page);

}  // namespace flamewire::profile
