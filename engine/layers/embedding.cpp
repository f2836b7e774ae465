// The reference of the embedding.
#include "engine/layers/embedding.h"

#include "engine/layers/workspace.h"
#include "engine/tensor.h"

namespace decodelab {
namespace {

class TableEmbedding final : public Embedding {
 public:
  explicit TableEmbedding(const at::Tensor& table) : table_(table) {}

  at::Tensor looked_up(const at::Tensor& ids, Workspace& workspace) const override {
    return decodelab::looked_up(table_, ids, workspace);
  }

 private:
  at::Tensor table_;
};

}  // namespace

std::unique_ptr<Embedding> make_table_embedding(const EmbeddingWeights& weights) {
  return std::make_unique<TableEmbedding>(weights.load());
}

at::Tensor looked_up(const at::Tensor& table, const at::Tensor& ids, Workspace& workspace) {
  if (!workspace.reuses()) {
    return at::embedding(table, ids);
  }
  const at::Tensor rows = workspace.allocate({ids.size(0), ids.size(1), table.size(1)}, table.options());
  at::Tensor flat = rows.view({-1, table.size(1)});
  at::index_select_out(flat, table, 0, ids.view(-1));
  return rows;
}

}  // namespace decodelab
