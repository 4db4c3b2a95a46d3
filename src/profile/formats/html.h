// The server's page as one file, with its script, its style and the answers that it would have requested. It opens from
// disk. A content security policy in the file forbids all requests.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace flamewire::profile {

struct HtmlPage {
    std::string_view title;
    std::string_view style, script;  // of the page; the script reads the answers from the element flamewire-answers
    std::string_view answers;        // JSON, as web/src/api/saved.ts describes
};

// The answers are stored as the base64 of their zlib stream, so a name cannot close an HTML element.
Result<std::string> html(const HtmlPage& page);

}  // namespace flamewire::profile
