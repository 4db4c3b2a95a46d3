#include "profile/store/functions.h"

namespace flamewire::profile {

namespace {

std::uint64_t name_hash(const Function& function) {
    return hash_mix((static_cast<std::uint64_t>(function.name) << 32) | function.module, hash_seed());
}

std::uint64_t full_hash(const Function& function) {
    return hash_mix(name_hash(function), static_cast<std::uint64_t>(function.kind));
}

}  // namespace

FunctionId FunctionTable::intern(const Function& function) {
    const auto equal = [&](FunctionId id) {
        const Function& other = functions_[id];
        return other.name == function.name && other.module == function.module && other.kind == function.kind;
    };
    if (const FunctionId known = index_.find(full_hash(function), equal)) {
        if (functions_[known].file == 0) {
            functions_[known].file = function.file;
            functions_[known].line = function.line;
        }
        return known;
    }
    const FunctionId id = narrow32(functions_.size());
    append_tight(functions_, function);
    index_.insert(full_hash(function), id, [this](FunctionId other) { return full_hash(functions_[other]); });
    join_group(id);
    return id;
}

void FunctionTable::join_group(FunctionId id) {
    const Function& function = functions_[id];
    const auto equal = [&](FunctionId other) {
        return functions_[other].name == function.name && functions_[other].module == function.module;
    };
    FunctionId group = group_index_.find(name_hash(function), equal);
    if (group == 0) {
        group = id;
        group_index_.insert(name_hash(function), id, [this](FunctionId other) { return name_hash(functions_[other]); });
    }
    append_tight(group_, group);
    append_tight(shown_, id);
    if (functions_[shown_[group]].kind == FrameKind::inlined) shown_[group] = id;
}

std::size_t FunctionTable::memory_bytes() const {
    return functions_.capacity() * sizeof(Function) + (group_.capacity() + shown_.capacity()) * sizeof(FunctionId) +
           index_.memory_bytes() + group_index_.memory_bytes();
}

}  // namespace flamewire::profile
