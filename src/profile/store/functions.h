// Interned functions. Two frames are of the same function when name, module and kind are equal. The inlined and the
// outlined form of one function are two entries (a call tree tells them apart) of one group (a table of functions does
// not).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "profile/store/id_index.h"
#include "profile/store/model.h"

namespace flamewire::profile {

class FunctionTable {
public:
    FunctionTable() : functions_(1), group_(1), shown_(1) {}

    // `file` and `line` are taken when the function is new or had none.
    FunctionId intern(const Function& function);

    [[nodiscard]] const Function& operator[](FunctionId id) const { return functions_[id]; }
    [[nodiscard]] std::size_t size() const { return functions_.size(); }
    // The same id for all functions of equal name and module, below size().
    [[nodiscard]] FunctionId group(FunctionId id) const { return group_[id]; }
    // How a group is shown: by its outlined form if there is one.
    [[nodiscard]] const Function& shown(FunctionId group) const { return functions_[shown_[group]]; }
    [[nodiscard]] std::size_t memory_bytes() const;

private:
    void join_group(FunctionId id);

    std::vector<Function> functions_;
    std::vector<FunctionId> group_;
    std::vector<FunctionId> shown_;  // by group
    IdIndex index_, group_index_;
};

}  // namespace flamewire::profile
