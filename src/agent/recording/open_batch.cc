#include "agent/recording/open_batch.h"

#include <utility>

#include "agent/log.h"

namespace flamewire::agent {

void OpenBatch::add_notice(std::string code, std::string text, std::string remedy) {
    if (remedy.empty())
        log_line(text);
    else
        log("{}{} Try: {}", text, text.ends_with('.') ? "" : ".", remedy);
    folder_.add_notice({std::move(code), std::move(text), std::move(remedy)});
    mark();
}

void OpenBatch::add_notices(std::vector<wire::Notice> notices) {
    for (wire::Notice& notice : notices)
        add_notice(std::move(notice.code), std::move(notice.text), std::move(notice.remedy));
}

void OpenBatch::add_loss(const wire::Loss& loss) {
    folder_.add_loss(loss);
    mark();
}

void OpenBatch::add_symbols(std::span<const TargetSymbol> symbols) {
    if (symbols.empty()) return;
    folder_.add_symbols(symbols);
    mark();
}

}  // namespace flamewire::agent
